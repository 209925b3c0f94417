#include "mpi/training/training.hpp"

#include "trireme/base/philox.hpp"
#include "trireme/comm/staged.hpp"

#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace trireme::testing {

using layout::Axis;

OwnedGroups mpi_groups(const layout::Mesh& mesh) {
  auto& runtime = mpi();
  const auto rank = runtime.world_rank();
  const comm::GroupOptions options{comm::Backend::automatic, 60};
  OwnedGroups groups;
  groups.tensor = runtime.make_group("tp", mesh.group(Axis::tensor, rank), options);
  groups.data = runtime.make_group("dp", mesh.group(Axis::data, rank), options);
  const auto stages = mesh.group(Axis::pipeline, rank);
  groups.pipeline = runtime.make_group("pp", stages, options);
  const bool at_end = rank == stages.front() || rank == stages.back();
  if (stages.size() > 1 && at_end) {
    groups.embedding = runtime.make_group("embedding", {stages.front(), stages.back()}, options);
  }
  return groups;
}

OwnedGroups local_groups() {
  OwnedGroups groups;
  groups.tensor = comm::make_local_group("tp", base::Rank{0});
  groups.pipeline = comm::make_local_group("pp", base::Rank{0});
  groups.data = comm::make_local_group("dp", base::Rank{0});
  return groups;
}

OwnedGroups staged(OwnedGroups groups, device::Device& device) {
  constexpr std::size_t piece_bytes = 3000;
  if (device.is_host()) return groups;
  for (auto* group : {&groups.tensor, &groups.pipeline, &groups.data, &groups.embedding}) {
    if (*group) *group = comm::make_staged_group(std::move(*group), device, piece_bytes);
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

}  // namespace

void fill(engine::Engine& engine, int step) {
  const auto& options = engine.options();
  const int data = options.mesh.degree(Axis::data);
  const int data_rank = options.mesh.coordinate(Axis::data, options.rank);
  const auto per_rank = options.micro_batches * options.micro_batch;
  const auto seq = options.sequence_length;
  for (int index = 0; index < options.micro_batches; ++index) {
    auto& batch = engine.batch(index);
    batch.first_sequence =
        step * per_rank * data + data_rank * per_rank + index * options.micro_batch;
    for (std::int64_t row = 0; row < options.micro_batch * seq; ++row) {
      const auto sequence = batch.first_sequence + row / seq;
      batch.tokens.i32()[row] = token(sequence, row % seq, options.model.vocab_size);
      batch.targets.i32()[row] = token(sequence, row % seq + 1, options.model.vocab_size);
    }
  }
}

TrainedRun run_training(const engine::EngineOptions& options, const engine::Groups& groups,
                        device::Kernels& kernels, int steps, double learning_rate) {
  const auto measured = engine::measure(options);
  auto memory = engine::Memory::on(kernels.device(), measured);
  engine::Engine engine(options, groups, kernels, memory);
  engine.initialise();
  std::vector<Observed> observed;
  for (int step = 0; step < steps; ++step) {
    fill(engine, step);
    const auto outcome = engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update(learning_rate, step + 1);
    observed.push_back({outcome.loss, reduced.gradient_norm});
  }
  for (std::size_t index = 0; index < measured.size(); ++index) {
    const auto purpose = engine::all_purposes[index];
    CAPTURE(device::name(purpose), measured[index], memory.peak_bytes()[index]);
    CHECK(measured[index] == memory.peak_bytes()[index]);
  }
  return {observed, engine.recorded()};
}

std::vector<Observed> train(const engine::EngineOptions& options, const engine::Groups& groups,
                            device::Kernels& kernels, int steps, double learning_rate) {
  return run_training(options, groups, kernels, steps, learning_rate).observed;
}

std::vector<Observed> train_serially(const engine::EngineOptions& options, device::Kernels& kernels,
                                     int steps) {
  static const auto world = mpi().make_world({comm::Backend::automatic, 300});
  std::vector<Observed> observed(static_cast<std::size_t>(steps));
  if (world->rank() == 0) {
    const auto groups = staged(local_groups(), kernels.device());
    observed = train(options, groups.views(), kernels, steps);
  }
  // Doubles travel as pairs of 32-bit words.
  const auto words = static_cast<std::int64_t>(observed.size() * sizeof(Observed) / 4);
  world->broadcast(device::Tensor(observed.data(), device::DType::i32, {words}), 0);
  return observed;
}

double distance(const std::vector<Observed>& a, const std::vector<Observed>& b) {
  double largest = 0;
  for (std::size_t step = 0; step < a.size(); ++step) {
    largest = std::max(largest, std::abs(a[step].loss - b[step].loss) / std::abs(b[step].loss));
  }
  return largest;
}

}  // namespace trireme::testing
