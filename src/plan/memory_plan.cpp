// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/memory_plan.hpp"

#include "trireme/base/format.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/engine/memory.hpp"
#include "trireme/engine/state_parts.hpp"
#include "trireme/inference/samples.hpp"
#include "trireme/layout/simulate.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace trireme::plan {

using layout::Axis;

namespace {

base::Result<double> bubble_of(const engine::ScheduleOptions& given, int stages) {
  const auto schedule =
      layout::make_schedule(given.kind, stages, given.micro_batches, given.virtual_stages);
  if (!schedule) return schedule.failure();
  // A chunk is one of v pieces of a stage.
  const double share = 1.0 / given.virtual_stages;
  const auto simulation = layout::simulate(*schedule, {share, share, share, 0.0});
  if (!simulation) return simulation.failure();
  return simulation->bubble_fraction;
}

base::Result<std::vector<base::Rank>> chosen(const Ranks& ranks, int world_size) {
  std::vector<base::Rank> list;
  if (ranks.only) {
    const int rank = ranks.only->value();
    if (rank < 0 || rank >= world_size) {
      return base::usage_failure(
          base::format("rank {} is not one of {} ranks (they count from 0); try 0 to {}", rank,
                       world_size, world_size - 1));
    }
    return std::vector<base::Rank>{*ranks.only};
  }
  for (int rank = 0; rank < world_size; ++rank) list.emplace_back(rank);
  return list;
}

/// Measures ranks, each kind of them once: data-parallel ranks differ only where they own matrices.
class Measurements {
 public:
  Measurements(engine::EngineOptions options, engine::Beside beside, bool snapshots)
      : options_(std::move(options)), beside_(std::move(beside)), snapshots_(snapshots) {}

  std::size_t total(const engine::EngineOptions& options) const {
    return engine::total_bytes(engine::measure(options, beside_));
  }
  /// Ranks that are measured from now on compute this again; [stage].
  void use(const std::vector<engine::ChosenRecompute>& chosen) {
    recompute_.clear();
    for (const auto& each : chosen) recompute_.push_back(each.recompute);
    measured_.clear();
  }

  std::vector<RankMemory> of(const std::vector<base::Rank>& ranks) {
    std::vector<RankMemory> measured;
    for (const auto rank : ranks) measured.push_back(of(rank));
    return measured;
  }

 private:
  RankMemory of(base::Rank rank) {
    options_.sharding.rank = rank;
    const auto& mesh = options_.sharding.mesh;
    const std::pair place{mesh.coordinate(Axis::pipeline, rank),
                          mesh.coordinate(Axis::tensor, rank)};
    auto [alike, is_new_place] = alike_.try_emplace(place);
    if (is_new_place) alike->second = engine::sharding_of(options_).alike_shards();
    const int shard =
        alike->second[static_cast<std::size_t>(mesh.coordinate(layout::replica_axes, rank))];
    auto [found, is_new] = measured_.try_emplace(std::pair{place, shard});
    if (is_new) {
      const auto options =
          recompute_.empty()
              ? options_
              : engine::with_recompute(options_, recompute_[static_cast<std::size_t>(place.first)]);
      found->second = {rank, engine::measure(options, beside_),
                       snapshots_ ? engine::sharding_of(options_).saved_bytes() : 0};
    }
    auto memory = found->second;
    memory.rank = rank;
    return memory;
  }

  using Place = std::pair<int, int>;  // coordinates of pipeline and tensor

  engine::EngineOptions options_;
  engine::Beside beside_;
  bool snapshots_;
  std::vector<layers::Recompute> recompute_;
  std::map<Place, std::vector<int>> alike_;
  std::map<std::pair<Place, int>, RankMemory> measured_;
};

/// [stage]: memory by which its largest rank passes the limit.
std::vector<std::int32_t> over_by_stage(const std::vector<RankMemory>& ranks,
                                        const layout::Mesh& mesh, std::int64_t limit) {
  std::vector<std::int32_t> over(static_cast<std::size_t>(mesh.degree(Axis::pipeline)));
  for (const auto& rank : ranks) {
    auto& most = over[static_cast<std::size_t>(mesh.coordinate(Axis::pipeline, rank.rank))];
    most = std::max(most, engine::mebibytes_over(engine::total_bytes(rank.bytes), limit));
  }
  return over;
}

/// Recomputation of each stage with which its largest rank fits into the limit, as
/// train/start/fitted_options.hpp has it. `measurements` go on with it.
base::Result<std::vector<engine::ChosenRecompute>> chosen_recompute(engine::EngineOptions options,
                                                                    std::int64_t limit,
                                                                    Measurements& measurements) {
  const auto mesh = options.sharding.mesh;
  const auto all = chosen({}, mesh.world_size());
  const auto stages = static_cast<std::size_t>(mesh.degree(Axis::pipeline));
  std::vector<engine::ChosenRecompute> choices(stages);
  std::vector<std::int32_t> wanted(stages);
  for (;;) {
    const auto over = over_by_stage(measurements.of(*all), mesh, limit);
    if (*std::max_element(over.begin(), over.end()) == 0) return choices;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      wanted[stage] += over[stage];
      options.sharding.rank = mesh.moved(base::Rank{0}, Axis::pipeline, static_cast<int>(stage));
      auto choice = engine::choose_recompute(
          options, wanted[stage], [&](const auto& some) { return measurements.total(some); });
      if (!choice) return choice.failure();
      choices[stage] = *choice;
    }
    measurements.use(choices);
  }
}

const RankMemory& largest_of(const std::vector<RankMemory>& ranks) {
  return *std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return engine::total_bytes(a.bytes) < engine::total_bytes(b.bytes);
  });
}

/// Refuses what a start refuses because the largest of all ranks does not fit.
base::Status check_all_ranks(engine::EngineOptions options, std::int64_t limit,
                             Measurements& measurements) {
  if (!engine::must_fit(options, limit)) return {};
  const auto all = chosen({}, options.sharding.mesh.world_size());
  options.sharding.rank = largest_of(measurements.of(*all)).rank;
  return engine::check_held_activations(options, limit,
                                        [&](const auto& some) { return measurements.total(some); });
}

/// Room for what a rank holds of ranks on other nodes, any of them (checkpoint.local_directory).
void add_copies(const config::CheckpointOptions& keys, std::vector<RankMemory>& ranks) {
  if (keys.local_directory.empty()) return;
  std::size_t largest = 0;
  for (const auto& rank : ranks) largest = std::max(largest, rank.snapshot_bytes);
  for (auto& rank : ranks) {
    rank.snapshot_bytes += static_cast<std::size_t>(keys.replicas) * largest;
  }
}

}  // namespace

const RankMemory& MemoryPlan::largest() const {
  return largest_of(ranks);
}

base::Result<MemoryPlan> plan_memory(const config::Config& config, const model::ModelConfig& model,
                                     int world_size, const Ranks& ranks) {
  const auto mesh = engine::mesh_from(config, model, world_size);
  if (!mesh) return mesh.failure();
  const auto wanted = chosen(ranks, world_size);
  if (!wanted) return wanted.failure();
  auto options = engine::options_from(config, model, *mesh, wanted->front());
  if (!options) return options.failure();
  const auto samples = inference::read_sample_task(config, model);
  if (!samples) return samples.failure();
  const auto bubble = bubble_of(options->schedule, mesh->degree(Axis::pipeline));
  if (!bubble) return bubble.failure();

  const auto& keys = config.options().checkpoint;
  MemoryPlan plan;
  plan.options = *options;
  plan.parameter_count = model::parameter_count(model);
  plan.tokens_per_step =
      engine::global_batch(options->schedule, *mesh) * options->schedule.sequence_length;
  plan.bubble_fraction = *bubble;
  if (const auto& choice = options->numerics.gpu_attention) {
    const auto size = engine::attention_of(*options);
    plan.libraries = device::planned_library_memory(size, *choice);
    plan.attention = device::planned_attention(size, *choice);
  }
  Measurements measurements(*options, inference::decoder_beside(*samples), keys.beside_training());
  const auto limit = config.options().train.memory_limit;
  if (config.options().train.activation_checkpointing) {
    if (auto status = check_all_ranks(*options, limit, measurements); !status) {
      return status.failure();
    }
  } else {
    auto choices = chosen_recompute(*options, limit, measurements);
    if (!choices) return choices.failure();
    plan.chosen = std::move(choices).value();
    plan.options = engine::with_recompute(plan.options, plan.chosen.front().recompute);
  }
  plan.ranks = measurements.of(*wanted);
  add_copies(keys, plan.ranks);
  return plan;
}

}  // namespace trireme::plan
