// SPDX-License-Identifier: Apache-2.0
// FP8 copies of weights that are kept for a step: the bits of copies made for every product, from
// fewer kernels and with the memory that the plan says.
#include "trireme/base/format.hpp"
#include "trireme/engine/measure.hpp"

#include "mpi/training/fp8_options.hpp"
#include "support/forwarding_kernels.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>

using namespace trireme;
using namespace trireme::testing;
using layers::WeightCopies;
using layout::Axis;
using layout::ScheduleKind;
using model::Architecture;

namespace {

constexpr int steps = 3;
constexpr double learning_rate = 1e-3;
/// Queries, keys and values; attention's output; the feed-forward's two.
constexpr int products_of_a_layer = 4;

engine::EngineOptions options_for(Architecture architecture, const layout::Mesh& mesh,
                                  WeightCopies copies) {
  auto options = options_in_fp8(architecture, mesh);
  options.memory.weight_copies = copies;
  return options;
}

/// Counts operations by name, and passes all on.
class CountingKernels final : public ForwardingKernels {
 public:
  CountingKernels() : ForwardingKernels(device::make_cpu_kernels(1)) {}

  void compute(const device::Operation& operation) override {
    ++counts_[operation.name()];
    ForwardingKernels::compute(operation);
  }
  int count(const std::string& operation) { return counts_[operation]; }
  void forget() { counts_.clear(); }

 private:
  std::map<std::string, int> counts_;
};

std::vector<layout::Mesh> meshes() {
  if (mpi().world_size() == 1) return {layout::Mesh::of(1, 1, 1)};
  return meshes_for_fp8();
}

/// Quantised copies of a step, and of an evaluation behind it.
struct Quantised {
  int training = 0;
  int evaluation = 0;
};

Quantised count_quantised(const engine::EngineOptions& options) {
  const auto groups = local_groups();
  CountingKernels kernels;
  auto memory = engine::Memory::host(engine::measure(options));
  engine::Engine engine(options, groups.views(), kernels, memory);
  engine.initialise();
  Quantised quantised;
  for (int step = 0; step < 2; ++step) {
    kernels.forget();
    fill(engine, step);
    engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update({step + 1, learning_rate, reduced.gradient_norm});
    quantised.training = kernels.count("quantise");
    CHECK(kernels.count("largest_magnitude") == quantised.training);
  }
  kernels.forget();
  engine.evaluate();
  quantised.evaluation = kernels.count("quantise");
  return quantised;
}

std::size_t bytes_of(const engine::EngineOptions& options, device::Purpose purpose) {
  const auto use = engine::measure(options);
  for (std::size_t index = 0; index < use.size(); ++index) {
    if (engine::all_purposes[index] == purpose) return use[index];
  }
  return 0;
}

}  // namespace

TEST_CASE("copies of weights that are kept for a step change no bit") {
  const auto kernels = device::make_cpu_kernels(1);
  for (const auto& mesh : meshes()) {
    for (const auto architecture : {Architecture::gpt2, Architecture::llama}) {
      const auto what = base::format("{} {}", model::name(architecture), mesh.text());
      still_going(what);
      CAPTURE(what);
      const auto groups = mpi_groups(mesh);
      const auto run = [&](WeightCopies copies, int zero_level, layers::Recompute recompute) {
        auto options = options_for(architecture, mesh, copies);
        options.sharding.zero_level = zero_level;
        options.memory.recompute = recompute;
        if (mesh.degree(Axis::pipeline) > 1 && zero_level == 1) {
          options.schedule.kind = ScheduleKind::interleaved;
          options.schedule.virtual_stages = 2;
        }
        return train(options, groups.views(), *kernels, steps, learning_rate);
      };
      const auto expected = run(WeightCopies::for_each_use, 0, layers::Recompute{});
      CHECK(run(WeightCopies::kept, 0, layers::Recompute{}) == expected);
      CHECK(run(WeightCopies::kept, 1, layers::Recompute{layers::Activation::layer}) == expected);
    }
  }
}

TEST_CASE("an evaluation and a step after it find copies of what the weights are by then") {
  const auto kernels = device::make_cpu_kernels(1);
  for (const auto& mesh : meshes()) {
    still_going(mesh.text());
    CAPTURE(mesh.text());
    const auto groups = mpi_groups(mesh);
    const auto run = [&](WeightCopies copies) {
      auto options = options_for(Architecture::llama, mesh, copies);
      options.sharding.zero_level = 1;
      auto memory = engine::Memory::host(engine::measure(options));
      engine::Engine engine(options, groups.views(), *kernels, memory);
      engine.initialise();
      std::vector<double> losses;
      for (int step = 0; step < steps; ++step) {
        fill(engine, step);
        losses.push_back(engine.evaluate().loss_sum);
        engine.run_schedule();
        const auto reduced = engine.reduce_gradients();
        losses.push_back(reduced.loss);
        engine.update({step + 1, 0.01, reduced.gradient_norm});
        losses.push_back(engine.evaluate().loss_sum);
      }
      // Whoever writes parameters by hand is followed, too.
      for (const auto& part : engine.parameter_parts()) {
        kernels->issue(device::Add{part.values, part.values, part.values});
      }
      losses.push_back(engine.evaluate().loss_sum);
      return losses;
    };
    const auto found = run(WeightCopies::kept);
    CHECK(found == run(WeightCopies::for_each_use));
    CHECK(found[0] != found[2]);
  }
}

TEST_CASE("ranks that hold parts of a weight keep copies with one scale") {
  if (mpi().world_size() != 2) return;
  const auto mesh = layout::Mesh::of(1, 1, 2);
  const auto groups = mpi_groups(mesh);
  const auto kernels = device::make_cpu_kernels(1);
  const auto options = options_for(Architecture::llama, mesh, WeightCopies::kept);
  model::StageParameters stage(
      options.model, {mesh, options.sharding.rank, {{0, options.model.num_hidden_layers}}},
      std::int64_t{1} << 20);
  auto arena = device::Arena::host(device::Purpose::parameters, std::size_t{1} << 22);
  const auto flat = arena.allocate(device::DType::bf16, {stage.flat().size});
  stage.bind(flat, {});
  // Beside 256 the other rank's 2^-11 is less than half of the least code.
  const bool small = groups.on(layout::Axis::tensor).rank() == 0;
  kernels->issue(device::Fill{flat, small ? 0x1p-11F : 256.0F});
  const layers::KeptCopies copies(stage, arena);
  layers::StageContext context{options.model, *kernels, groups.on(layout::Axis::tensor), arena,
                               device::DType::bf16};
  const auto used = arena.used_bytes();
  copies.renew(context);
  CHECK(arena.used_bytes() == used);
  for (const char* name : {"layers.0.attention.qkv.weight", "layers.3.mlp.down.weight"}) {
    INFO(name);
    const auto& copy = copies.of(name);
    CHECK(copy.unscale.f32()[0] == 1.0F);
    const auto weight = stage.parameter(name);
    REQUIRE(copy.codes.element_count() == weight.element_count());
    for (std::int64_t i = 0; i < weight.element_count(); ++i) {
      REQUIRE(device::to_float(copy.codes.e4m3()[i]) == (small ? 0.0F : 256.0F));
    }
  }
}

TEST_CASE("a weight whose copy is kept is quantised once a step") {
  if (mpi().world_size() != 1) return;
  const auto mesh = layout::Mesh::of(1, 1, 1);
  for (const auto recompute : {layers::Recompute{}, layers::Recompute{layers::Activation::layer}}) {
    auto options = options_for(Architecture::llama, mesh, WeightCopies::for_each_use);
    options.memory.recompute = recompute;
    const int layers = static_cast<int>(options.model.num_hidden_layers);
    const int products = products_of_a_layer * layers;
    // Recomputation stops before a layer's last product.
    const int forwards = recompute == layers::Recompute{layers::Activation::layer}
                             ? 2 * products - layers
                             : products;
    const auto each = count_quantised(options);
    CHECK(each.training == 2 * forwards * options.schedule.micro_batches);
    CHECK(each.evaluation == 2 * products * options.schedule.micro_batches);
    options.memory.weight_copies = WeightCopies::kept;
    const auto kept = count_quantised(options);
    CHECK(kept.training == forwards * options.schedule.micro_batches + products);
    CHECK(kept.evaluation == products * options.schedule.micro_batches + products);
  }
}

TEST_CASE("copies that are kept take a byte an element beside the parameters") {
  if (mpi().world_size() != 1) return;
  const auto mesh = layout::Mesh::of(1, 1, 1);
  const auto each = options_for(Architecture::gpt2, mesh, WeightCopies::for_each_use);
  const auto kept = options_for(Architecture::gpt2, mesh, WeightCopies::kept);
  // Hidden 64, feed-forward 64: 3 + 1 + 1 + 1 squares a layer.
  constexpr std::size_t codes = std::size_t{4} * 6 * 64 * 64;
  const auto more =
      bytes_of(kept, device::Purpose::parameters) - bytes_of(each, device::Purpose::parameters);
  CHECK(more >= codes + 16 * sizeof(float));
  // Each scale begins where tensors do.
  CHECK(more < codes + 17 * 512);
  CHECK(bytes_of(kept, device::Purpose::workspace) <= bytes_of(each, device::Purpose::workspace));
  for (const auto purpose : engine::all_purposes) {
    if (purpose == device::Purpose::parameters || purpose == device::Purpose::workspace) continue;
    CHECK(bytes_of(kept, purpose) == bytes_of(each, purpose));
  }
}
