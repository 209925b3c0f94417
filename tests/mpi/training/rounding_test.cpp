// SPDX-License-Identifier: Apache-2.0
// Parameters rounded at random: every rank of every layout takes the bits that the elements'
// numbers in their tensors have, for the step that wrote them.
#include "trireme/base/format.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/engine/measure.hpp"

#include "mpi/training/training.hpp"
#include "support/model_on_mesh.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <map>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;
using layout::ScheduleKind;
using model::Architecture;
using optim::ParameterRounding;

namespace {

constexpr std::uint64_t seed = 7;
constexpr int steps = 3;
constexpr double learning_rate = 1e-3;
/// Other sums make other bf16 activations: as far as layouts are from one another in bf16.
constexpr double between_layouts = 2e-3;

engine::EngineOptions options_for(Architecture architecture, const layout::Mesh& mesh,
                                  ParameterRounding rounding) {
  engine::EngineOptions options;
  options.model = tiny(architecture);
  options.sharding.mesh = mesh;
  options.sharding.rank = base::Rank{mesh.world_size() == 1 ? 0 : mpi().world_rank().value()};
  options.schedule.micro_batch = 2;
  options.schedule.micro_batches = 6 / mesh.degree(Axis::data);
  options.schedule.sequence_length = 24;
  options.numerics.dtype = device::DType::bf16;
  options.sharding.bucket_bytes = 64 << 10;
  options.numerics.clip_norm = 1.0;
  options.numerics.seed = seed;
  options.sharding.rule.rounding = rounding;
  options.sharding.rule.seed = seed;
  return options;
}

std::vector<layout::Mesh> meshes(Architecture architecture) {
  const int world_size = mpi().world_size();
  std::vector<layout::Mesh> list;
  for (int pipeline = 1; pipeline <= world_size; ++pipeline) {
    for (int tensor = 1; tensor * pipeline <= world_size; ++tensor) {
      if (world_size % (pipeline * tensor) != 0) continue;
      const auto mesh = layout::Mesh::of(pipeline, world_size / (pipeline * tensor), tensor);
      const bool fits = check_on(tiny(architecture), mesh).ok() && 6 % mesh.degree(Axis::data) == 0;
      if (fits) list.push_back(mesh);
    }
  }
  return list;
}

/// By the definition, from nothing that the engine uses but the counter-based numbers.
std::uint16_t rounded(float master, const std::string& name, std::int64_t step,
                      std::uint64_t number) {
  const auto key =
      base::philox(seed, base::stream_of("optimizer.rounding"), static_cast<std::uint64_t>(step));
  const auto step_seed = (std::uint64_t{key[1]} << 32) | key[0];
  const auto words = base::philox(step_seed, base::stream_of(name), number / 8);
  const auto bits = words[number % 8 / 2] >> (number % 2 == 0 ? 0 : 16) & 0xFFFFU;
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(master) + bits) >> 16);
}

/// The number in the whole tensor of element `index` of a box.
std::uint64_t number_of(const layout::Shape& shape, const layout::Box& box, std::int64_t index) {
  if (shape.size() == 1) return static_cast<std::uint64_t>(box.offset[0] + index);
  const auto row = box.offset[0] + index / box.length[1];
  const auto column = box.offset[1] + index % box.length[1];
  return static_cast<std::uint64_t>(row * shape[1] + column);
}

/// An engine that is trained for some steps, and what it has of parameters and masters.
class Trained {
 public:
  Trained(const engine::EngineOptions& options, const comm::AxisGroups& groups, int count)
      : kernels_(device::make_cpu_kernels(1)),
        memory_(engine::Memory::host(engine::measure(options))),
        engine_(options, groups, *kernels_, memory_) {
    engine_.initialise();
    for (int step = 0; step < count; ++step) {
      fill(engine_, step);
      engine_.run_schedule();
      const auto reduced = engine_.reduce_gradients();
      engine_.update({step + 1, learning_rate, reduced.gradient_norm});
    }
  }
  engine::Engine& engine() { return engine_; }

  /// Bits by tensor and number; -1: not here.
  using Elements = std::map<std::string, std::vector<int>>;
  Elements parameters() {
    Elements elements;
    for (const auto& part : engine_.parameter_parts()) {
      auto& bits = of(elements, part.name, part.shape);
      for (std::int64_t i = 0; i < part.values.element_count(); ++i) {
        bits[number_of(part.shape, part.box, i)] = part.values.bf16()[i].bits;
      }
    }
    return elements;
  }
  /// The masters that are here, as they are rounded after `step`.
  Elements rounded_masters(std::int64_t step) {
    Elements elements;
    for (const auto& part : engine_.state_parts()) {
      if (part.name.find('/') != std::string::npos) continue;
      auto& bits = of(elements, part.name, part.shape);
      for (std::int64_t i = 0; i < part.values.element_count(); ++i) {
        const auto number = number_of(part.shape, part.box, i);
        bits[number] = rounded(part.values.f32()[i], part.name, step, number);
      }
    }
    return elements;
  }

 private:
  static std::vector<int>& of(Elements& elements, const std::string& name,
                              const layout::Shape& shape) {
    auto& bits = elements[name];
    bits.resize(static_cast<std::size_t>(layout::element_count(shape)), -1);
    return bits;
  }

  std::unique_ptr<device::Kernels> kernels_;
  engine::Memory memory_;
  engine::Engine engine_;
};

struct Compared {
  std::int64_t elements = 0;
  std::int64_t differences = 0;
};

/// The elements of `some`, which must all be in `all`.
Compared compared(const Trained::Elements& some, const Trained::Elements& all) {
  Compared result;
  for (const auto& [name, bits] : some) {
    const auto& others = all.at(name);
    for (std::size_t number = 0; number < bits.size(); ++number) {
      if (bits[number] < 0) continue;
      ++result.elements;
      if (bits[number] != others[number]) ++result.differences;
    }
  }
  return result;
}

}  // namespace

TEST_CASE("every element is rounded by the bits of its number, wherever it lies") {
  for (const auto architecture : {Architecture::gpt2, Architecture::llama}) {
    // All layouts begin with the masters of one rank, and so with its parameters.
    const auto local = local_groups();
    const auto one = layout::Mesh::of(1, 1, 1);
    Trained serial(options_for(architecture, one, ParameterRounding::stochastic), local.views(), 0);
    const auto begin = serial.parameters();
    for (const auto& mesh : meshes(architecture)) {
      const auto groups = mpi_groups(mesh);
      auto options = options_for(architecture, mesh, ParameterRounding::stochastic);
      Trained::Elements plain;
      for (const int zero_level : {0, 1}) {
        const auto what =
            base::format("{} {}, zero {}", model::name(architecture), mesh.text(), zero_level);
        still_going(what);
        CAPTURE(what);
        options.sharding.zero_level = zero_level;
        const auto at_begin = Trained(options, groups.views(), 0).parameters();
        CHECK(compared(at_begin, begin).differences == 0);
        Trained trained(options, groups.views(), steps);
        const auto parameters = trained.parameters();
        const auto found = compared(trained.rounded_masters(steps), parameters);
        CHECK(found.elements > 0);
        CHECK(found.differences == 0);
        // Another step has other bits: most elements have something to cut off.
        const auto other_step = compared(trained.rounded_masters(steps + 1), parameters);
        CHECK(other_step.differences > other_step.elements / 10);
        // Elements that other data-parallel ranks have rounded are the same.
        if (zero_level == 0) plain = parameters;
        CHECK(parameters == plain);
        // As after a checkpoint is loaded: the masters are written again, of the step they are of.
        trained.engine().state_changed(steps);
        CHECK(trained.parameters() == parameters);
        trained.engine().state_changed(steps + 1);
        CHECK(trained.parameters() != parameters);
      }
    }
  }
}

TEST_CASE("layouts that change no bit change none with parameters rounded at random") {
  const auto kernels = device::make_cpu_kernels(1);
  constexpr auto architecture = Architecture::llama;
  constexpr int count = 6;
  const auto run = [&](const engine::EngineOptions& options, const comm::AxisGroups& groups) {
    return train(options, groups, *kernels, count, learning_rate);
  };
  const auto local = local_groups();
  const auto one = layout::Mesh::of(1, 1, 1);
  const auto serial =
      run(options_for(architecture, one, ParameterRounding::stochastic), local.views());
  const auto nearest =
      run(options_for(architecture, one, ParameterRounding::nearest), local.views());
  CHECK(serial.front().loss != nearest.front().loss);
  CHECK(distance(serial, nearest) < 0.02);
  for (const auto& mesh : meshes(architecture)) {
    still_going(mesh.text());
    CAPTURE(mesh.text());
    const auto groups = mpi_groups(mesh);
    auto options = options_for(architecture, mesh, ParameterRounding::stochastic);
    const auto plain = run(options, groups.views());
    if (mesh.degree(Axis::pipeline) == mesh.world_size()) {
      CHECK(plain == serial);
    } else {
      CHECK(distance(plain, serial) <= between_layouts);
    }
    options.sharding.zero_level = 1;
    options.memory.recompute = layers::Recompute{layers::Activation::layer};
    options.schedule.kind = ScheduleKind::gpipe;
    CHECK(run(options, groups.views()) == plain);
  }
}

TEST_CASE("momentum sgd rounds at random as well") {
  if (mpi().world_size() != 1) return;
  const auto groups = local_groups();
  auto options =
      options_for(Architecture::gpt2, layout::Mesh::of(1, 1, 1), ParameterRounding::stochastic);
  options.sharding.rule.kind = optim::RuleKind::sgd;
  Trained trained(options, groups.views(), steps);
  const auto found = compared(trained.rounded_masters(steps), trained.parameters());
  CHECK(found.elements > 0);
  CHECK(found.differences == 0);
}
