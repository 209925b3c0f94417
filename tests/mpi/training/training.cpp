// SPDX-License-Identifier: Apache-2.0
#include "mpi/training/training.hpp"

#include "trireme/base/philox.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/comm/staged.hpp"
#include "trireme/engine/measure.hpp"
#include "trireme/layout/token_runs.hpp"
#include "trireme/model/parameters.hpp"

#include "support/device/watched_group.hpp"
#include "support/model_on_mesh.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace trireme::testing {

using layout::Axis;

comm::OwnedAxisGroups mpi_groups(const layout::Mesh& mesh) {
  return {mesh, mpi().world_rank(),
          [](const comm::AxisGroup&, const char* name, std::vector<base::Rank> members) {
            return mpi().make_group(name, std::move(members), {comm::Backend::automatic, 60});
          }};
}

comm::OwnedAxisGroups local_groups() {
  return {layout::Mesh::of(1, 1, 1), base::Rank{0},
          [](const comm::AxisGroup&, const char* name, const std::vector<base::Rank>&) {
            return comm::make_local_group(name, base::Rank{0});
          }};
}

comm::OwnedAxisGroups staged(comm::OwnedAxisGroups groups, device::Device& device) {
  constexpr std::size_t piece_bytes = 3000;
  if (device.is_host()) return groups;
  for (auto& [axis, ends, group] : groups.all()) {
    if (!group) continue;
    group = comm::make_staged_group(std::move(group), device, piece_bytes);
    group = watched_on(device, std::move(group));
  }
  return groups;
}

model::ModelConfig tiny(model::Architecture architecture) {
  model::ModelConfig config;
  config.architecture = architecture;
  config.vocab_size = 97;
  config.hidden_size = 48;
  config.intermediate_size = 80;
  config.num_hidden_layers = 6;
  config.num_attention_heads = 12;
  config.num_key_value_heads = 12;
  config.head_dim = 4;
  config.max_position_embeddings = 64;
  switch (architecture) {
    case model::Architecture::gpt2:
      config.tie_word_embeddings = true;
      break;
    case model::Architecture::llama:
      config.num_key_value_heads = 2;
      config.rope_scaling = {model::RopeScalingKind::llama3, 8.0, 1.0, 4.0, 16};
      break;
    case model::Architecture::qwen3:
      config.head_dim = 8;
      config.num_key_value_heads = 6;
      break;
  }
  return config;
}

engine::EngineOptions tiny_options(model::Architecture architecture, const layout::Mesh& mesh,
                                   int micro_batches) {
  engine::EngineOptions options;
  options.model = tiny(architecture);
  options.sharding.mesh = mesh;
  options.sharding.rank = mpi().world_rank();
  options.sharding.bucket_bytes = 16 << 10;
  options.schedule.micro_batches = micro_batches / mesh.degree(Axis::data);
  options.schedule.sequence_length = 12;
  options.numerics.clip_norm = 0.5;
  options.numerics.seed = 7;
  return options;
}

std::vector<layout::Mesh> meshes_of(int world_size, model::Architecture architecture) {
  std::vector<layout::Mesh> meshes;
  for (int pipeline = 1; pipeline <= world_size; ++pipeline) {
    for (int tensor = 1; tensor * pipeline <= world_size; ++tensor) {
      if (world_size % (pipeline * tensor) != 0) continue;
      const auto mesh = layout::Mesh::of(pipeline, world_size / (pipeline * tensor), tensor);
      if (check_on(tiny(architecture), mesh).ok()) meshes.push_back(mesh);
    }
  }
  return meshes;
}

namespace {

/// Learnable: each token follows from the one before it most of the time.
std::int32_t token(std::int64_t sequence, std::int64_t position, std::int64_t vocabulary) {
  const auto bits =
      base::philox(11, static_cast<std::uint64_t>(sequence), static_cast<std::uint64_t>(position));
  const auto start = base::philox(12, static_cast<std::uint64_t>(sequence), 0)[0] % 97;
  const bool noise = bits[0] % 4 == 0;
  const auto plain = start + 5 * static_cast<std::uint32_t>(position);
  return static_cast<std::int32_t>((noise ? bits[1] : plain) %
                                   static_cast<std::uint32_t>(vocabulary));
}

/// First tokens of the documents of a sequence, one of four tokens on average; every fifth sequence
/// is one document.
std::vector<std::int32_t> first_keys(std::int64_t sequence, std::int64_t length) {
  std::vector<std::int32_t> keys(static_cast<std::size_t>(length), 0);
  for (std::size_t position = 1; position < keys.size() && sequence % 5 != 0; ++position) {
    const bool begins =
        base::philox(13, static_cast<std::uint64_t>(sequence), position)[0] % 4 == 0;
    keys[position] = begins ? static_cast<std::int32_t>(position) : keys[position - 1];
  }
  return keys;
}

}  // namespace

void fill(engine::Engine& engine, int step) {
  const auto& options = engine.options();
  const int data = options.sharding.mesh.degree(Axis::data);
  const int data_rank = options.sharding.mesh.coordinate(Axis::data, options.sharding.rank);
  const auto per_rank = options.schedule.micro_batches * options.schedule.micro_batch;
  const auto runs = layout::token_runs(
      options.schedule.sequence_length, options.sharding.mesh.degree(Axis::context),
      options.sharding.mesh.coordinate(Axis::context, options.sharding.rank));
  for (int index = 0; index < options.schedule.micro_batches; ++index) {
    auto& batch = engine.batch(index);
    batch.first_sequence =
        step * per_rank * data + data_rank * per_rank + index * options.schedule.micro_batch;
    std::int64_t row = 0;
    for (std::int64_t place = 0; place < options.schedule.micro_batch; ++place) {
      const auto sequence = batch.first_sequence + place;
      const auto documents = first_keys(sequence, options.schedule.sequence_length);
      for (const auto& run : runs) {
        for (auto position = run.begin; position < run.end; ++position, ++row) {
          if (batch.first_keys) {
            batch.first_keys.i32()[row] = documents[static_cast<std::size_t>(position)];
          }
          batch.tokens.i32()[row] = token(sequence, position, options.model.vocab_size);
          batch.targets.i32()[row] = token(sequence, position + 1, options.model.vocab_size);
        }
      }
    }
  }
}

std::vector<ParameterCopy> masters_of(engine::Engine& engine) {
  std::vector<ParameterCopy> copies;
  for (const auto& part : engine.state_parts()) {
    // Moments have a prefix.
    if (part.name.find('/') != std::string::npos) continue;
    device::HostMirror mirror(engine.device());
    const auto here = mirror.of(part.values);
    mirror.fetch();
    copies.push_back(
        {part.name, part.shape, part.box, {here.f32(), here.f32() + here.element_count()}});
  }
  return copies;
}

namespace {

/// Rank 0's numbers, everywhere.
template <typename T>
void tell_all(std::vector<T>& values) {
  static const auto world = mpi().make_world({comm::Backend::automatic, 300});
  const auto bytes = comm::broadcast_bytes(
      *world, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  values.resize(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
}

}  // namespace

TrainedRun run_training(const engine::EngineOptions& options, const comm::AxisGroups& groups,
                        device::Kernels& kernels, int steps, double learning_rate,
                        const BeforeUpdate& before_update) {
  const auto measured = engine::measure(options);
  auto memory = engine::Memory::on(kernels.device(), measured);
  engine::Engine engine(options, groups, kernels, memory);
  engine.initialise();
  std::vector<Observed> observed;
  for (int step = 0; step < steps; ++step) {
    fill(engine, step);
    engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    if (before_update) before_update(engine, step);
    engine.update({step + 1, learning_rate, reduced.gradient_norm});
    observed.push_back({reduced.loss, reduced.gradient_norm});
  }
  for (std::size_t index = 0; index < measured.size(); ++index) {
    const auto purpose = engine::all_purposes[index];
    CAPTURE(device::name(purpose), measured[index], memory.peak_bytes()[index]);
    CHECK(measured[index] == memory.peak_bytes()[index]);
  }
  return {observed, engine.graph_use(), masters_of(engine)};
}

std::vector<Observed> train(const engine::EngineOptions& options, const comm::AxisGroups& groups,
                            device::Kernels& kernels, int steps, double learning_rate) {
  return run_training(options, groups, kernels, steps, learning_rate).observed;
}

TrainedRun run_serially(const engine::EngineOptions& options, device::Kernels& kernels, int steps,
                        double learning_rate) {
  TrainedRun run;
  if (mpi().world_rank().value() == 0) {
    const auto groups = staged(local_groups(), kernels.device());
    run = run_training(options, groups.views(), kernels, steps, learning_rate);
  }
  tell_all(run.observed);
  // Whole tensors, row after row, whatever the pieces they came in.
  std::map<std::string, std::vector<float>> whole;
  for (const auto& copy : run.parameters) {
    auto& values = whole[copy.name];
    values.resize(static_cast<std::size_t>(layout::element_count(copy.shape)));
    each_element(copy, [&](float value, std::size_t at) { values[at] = value; });
  }
  run.parameters.clear();
  for (const auto& parameter : model::parameters(options.model)) {
    const auto& [name, shape, cuts] = parameter.tensor;
    auto& values = whole[name];
    tell_all(values);
    run.parameters.push_back(
        {name, shape, {layout::Shape(shape.size(), 0), shape}, std::move(values)});
  }
  return run;
}

std::vector<Observed> train_serially(const engine::EngineOptions& options, device::Kernels& kernels,
                                     int steps, double learning_rate) {
  return run_serially(options, kernels, steps, learning_rate).observed;
}

double parameter_distance(const TrainedRun& run, const TrainedRun& serial) {
  std::map<std::string, const ParameterCopy*> whole;
  for (const auto& copy : serial.parameters) whole[copy.name] = &copy;
  float sums[2] = {};
  double away = 0;
  double length = 0;
  for (const auto& copy : run.parameters) {
    const auto* const expected = whole.at(copy.name);
    each_element(copy, [&](float value, std::size_t at) {
      const double reference = static_cast<double>(expected->values.at(at));
      const double difference = static_cast<double>(value) - reference;
      away += difference * difference;
      length += reference * reference;
    });
  }
  sums[0] = static_cast<float>(away);
  sums[1] = static_cast<float>(length);
  static const auto world = mpi().make_world({comm::Backend::mpi, 300});
  world->all_reduce(device::Tensor(sums, device::DType::f32, {2}), comm::ReduceOp::sum);
  const double apart = std::sqrt(static_cast<double>(sums[0]) / static_cast<double>(sums[1]));
  return std::isfinite(apart) ? apart : std::numeric_limits<double>::infinity();
}

double distance(const std::vector<Observed>& a, const std::vector<Observed>& b) {
  constexpr double infinitely_far = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return infinitely_far;
  double largest = 0;
  for (std::size_t step = 0; step < a.size(); ++step) {
    const double away = std::abs(a[step].loss - b[step].loss) / std::abs(b[step].loss);
    // A maximum would drop what is not a number.
    if (!std::isfinite(away)) return infinitely_far;
    largest = std::max(largest, away);
  }
  return largest;
}

}  // namespace trireme::testing
