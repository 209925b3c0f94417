// SPDX-License-Identifier: Apache-2.0
#include "layout_memory.hpp"

#include "trireme/base/error.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/engine/measure.hpp"
#include "trireme/engine/stage_layers.hpp"
#include "trireme/layout/unit_chunks.hpp"

#include <algorithm>
#include <utility>

namespace trireme::plan {

using layout::Axis;

namespace {

/// Micro-batches behind which each takes as much as the one before, where units take all in turn.
constexpr int few_in_turn = 3;

/// Settings that the memory of a rank depends on, but for its stage.
std::vector<std::int64_t> rank_key(const engine::EngineOptions& options) {
  const auto& sharding = options.sharding;
  return {sharding.mesh.degree(Axis::tensor),
          sharding.mesh.degree(Axis::data),
          sharding.zero_level,
          sharding.sequence_parallel == model::SequenceParallel::on ? 1 : 0,
          static_cast<std::int64_t>(sharding.assignment),
          options.schedule.micro_batch,
          engine::keeps_weight_copies(options) ? 1 : 0};
}

void append(std::vector<std::int64_t>& key, const layout::ChunkBuffers& buffers) {
  key.insert(key.end(), {buffers.activations, buffers.operands, buffers.left, buffers.inputs,
                         buffers.output_gradients});
}

bool is_no_less(const layout::ChunkBuffers& one, const layout::ChunkBuffers& other) {
  return one.activations >= other.activations && one.operands >= other.operands &&
         one.left >= other.left && one.inputs >= other.inputs &&
         one.output_gradients >= other.output_gradients;
}

}  // namespace

bool LayoutMemory::are_alike(const std::vector<Stage>& one, const std::vector<Stage>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const Stage& a, const Stage& b) { return a.covers(b) && b.covers(a); });
}

bool LayoutMemory::Stage::covers(const Stage& other) const {
  if (is_first != other.is_first || is_last != other.is_last) return false;
  for (std::size_t chunk = 0; chunk < layers.size(); ++chunk) {
    if (layers[chunk] < other.layers[chunk]) return false;
    if (!is_no_less(buffers[chunk], other.buffers[chunk])) return false;
  }
  return true;
}

LayoutMemory::Stages LayoutMemory::stage_of_units(const engine::EngineOptions& options) {
  const int micro_batches = options.schedule.micro_batches;
  return found_or_made(stages_, {-1, micro_batches}, [&] {
    const auto units = layout::unit_chunks(options.model.num_hidden_layers);
    const auto schedule = layout::breadth_first(static_cast<int>(units.size()), micro_batches);
    Stage stage{.index = 0,
                .is_first = true,
                .is_last = true,
                .layers = {},
                .buffers = layout::chunk_buffers(schedule, 0, layout::Passes::both)};
    for (const auto& unit : units) stage.layers.push_back(unit.end - unit.begin);
    return std::make_shared<const std::vector<Stage>>(1, std::move(stage));
  });
}

LayoutMemory::Stages LayoutMemory::stages_of(const engine::EngineOptions& options,
                                             int micro_batches) {
  if (options.sharding.takes_units_in_turn()) return stage_of_units(options);
  const auto placement =
      engine::placement_of(options.schedule, options.sharding.mesh.degree(Axis::pipeline));
  // One stage runs 1f1b, whichever schedule is asked for.
  const auto kind = placement.stages == 1 ? layout::ScheduleKind::one_forward_one_backward
                                          : options.schedule.kind;
  const Key key{static_cast<std::int64_t>(kind), placement.stages, micro_batches,
                placement.virtual_stages};
  return found_or_made(stages_, key, [&] {
    const auto schedule = base::value_or_throw(
        layout::make_schedule(kind, placement.stages, micro_batches, placement.virtual_stages));
    const auto layers = engine::chunk_layers(options.model, options.schedule, placement.stages);
    auto stages = std::make_shared<std::vector<Stage>>();
    for (int index = 0; index < placement.stages; ++index) {
      Stage stage{.index = index,
                  .is_first = index == placement.first_stage(),
                  .is_last = index == placement.last_stage(),
                  .layers = {},
                  .buffers = layout::chunk_buffers(schedule, index, layout::Passes::both)};
      for (const auto& chunk : layers[static_cast<std::size_t>(index)]) {
        stage.layers.push_back(chunk.end - chunk.begin);
      }
      stages->push_back(std::move(stage));
    }
    return Stages(std::move(stages));
  });
}

int LayoutMemory::micro_batches_measured(const engine::EngineOptions& options) {
  const int all = options.schedule.micro_batches;
  // They hold those of all.
  if (options.schedule.kind == layout::ScheduleKind::gpipe) return all;
  if (options.sharding.takes_units_in_turn()) return all;
  const int stages = options.sharding.mesh.degree(Axis::pipeline);
  constexpr int rounds = 4;
  const int many = std::min(all, rounds * stages);
  const Key key{static_cast<std::int64_t>(options.schedule.kind), stages, many,
                options.schedule.virtual_stages};
  return found_or_made(micro_batches_, key, [&] {
    const auto with_many = stages_of(options, many);
    for (int few = stages; few < many; few += stages) {
      if (are_alike(*stages_of(options, few), *with_many)) return few;
    }
    return many;
  });
}

std::size_t LayoutMemory::batch_bytes(const engine::EngineOptions& options) {
  return found_or_made(batches_, {options.schedule.micro_batch}, [&] {
    auto small = options;
    small.model.num_hidden_layers = 1;
    small.sharding.mesh = layout::Mesh::of(1, 1, 1);
    small.sharding.rank = base::Rank{0};
    small.sharding.sequence_parallel = model::SequenceParallel::off;
    small.schedule = one_stage(options.schedule);
    const auto of = [&](int micro_batches) {
      small.schedule.micro_batches = micro_batches;
      return engine::measure(small)[static_cast<std::size_t>(device::Purpose::batch)];
    };
    return of(2) - of(1);
  });
}

engine::MemoryUse LayoutMemory::use_in_turn(const engine::EngineOptions& options,
                                            const Member& member) {
  const auto with = [&](int micro_batches) {
    auto few = options;
    few.schedule.micro_batches = micro_batches;
    return use_of(few, stage_of_units(few)->front(), member, micro_batches);
  };
  auto use = with(few_in_turn);
  const auto fewer = with(few_in_turn - 1);
  const auto more = static_cast<std::size_t>(options.schedule.micro_batches - few_in_turn);
  for (std::size_t purpose = 0; purpose < use.size(); ++purpose) {
    use[purpose] += more * (use[purpose] - fewer[purpose]);
  }
  return use;
}

engine::MemoryUse LayoutMemory::use_of(const engine::EngineOptions& options, const Stage& stage,
                                       const Member& member, int micro_batches) {
  if (options.sharding.takes_units_in_turn() && options.schedule.micro_batches > few_in_turn) {
    return use_in_turn(options, member);
  }
  const auto& mesh = options.sharding.mesh;
  Key key = rank_key(options);
  key.insert(key.end(), {mesh.degree(Axis::pipeline) > 1 ? 1 : 0, member.tensor, member.data,
                         stage.is_first ? 1 : 0, stage.is_last ? 1 : 0});
  for (std::size_t kind = 0; kind < config::activation_count; ++kind) {
    key.push_back(options.memory.recompute.layers(static_cast<config::Activation>(kind)));
  }
  for (std::size_t chunk = 0; chunk < stage.layers.size(); ++chunk) {
    key.push_back(stage.layers[chunk]);
    append(key, stage.buffers[chunk]);
  }
  // Batches of its own count are added below.
  const auto batch = batch_bytes(options);
  constexpr auto of_batch = static_cast<std::size_t>(device::Purpose::batch);
  auto use = found_or_made(measured_, key, [&] {
    auto few = options;
    few.schedule.micro_batches = micro_batches;
    few.sharding.rank = rank_of(mesh, stage.index, member.tensor, member.data);
    auto made = engine::measure(few, inference::decoder_beside(samples_));
    made[of_batch] -= batch * static_cast<std::size_t>(micro_batches);
    return made;
  });
  use[of_batch] += batch * static_cast<std::size_t>(options.schedule.micro_batches);
  return use;
}

std::size_t LayoutMemory::bytes_of(const engine::EngineOptions& options, const Stage& stage,
                                   const Member& member, int micro_batches) {
  return engine::total_bytes(use_of(options, stage, member, micro_batches));
}

std::size_t LayoutMemory::stage_bytes(const engine::EngineOptions& options, const Stage& stage,
                                      int micro_batches) {
  if (owner_ == Owner::rank) return largest_of(options, stage, micro_batches);
  std::size_t all = 0;
  for (const auto& member : *members_of(options, stage)) {
    all += bytes_of(options, stage, member, micro_batches) * static_cast<std::size_t>(member.count);
  }
  return all;
}

std::vector<LayoutMemory::Stage> LayoutMemory::largest_first(const engine::EngineOptions& options,
                                                             const std::vector<Stage>& stages) {
  std::vector<std::pair<std::size_t, Stage>> descending;
  for (const auto& stage : stages) {
    const auto needs_no_less = [&](const Stage& other) {
      return other.covers(stage) && (!stage.covers(other) || other.index < stage.index);
    };
    if (std::any_of(stages.begin(), stages.end(), needs_no_less)) continue;
    descending.emplace_back(least_of_stage(options, stage), stage);
  }
  std::stable_sort(descending.begin(), descending.end(),
                   [](const auto& one, const auto& other) { return one.first > other.first; });
  std::vector<Stage> sorted;
  for (auto& [least, stage] : descending) sorted.push_back(std::move(stage));
  return sorted;
}

std::size_t LayoutMemory::needed(const engine::EngineOptions& options, std::size_t enough) {
  const int micro_batches = micro_batches_measured(options);
  const auto stages = stages_of(options, micro_batches);
  std::size_t result = 0;
  const bool adds_up = owner_ == Owner::node;
  for (const auto& stage : adds_up ? *stages : largest_first(options, *stages)) {
    if (result > enough) break;
    const auto bytes = stage_bytes(options, stage, micro_batches);
    result = adds_up ? result + bytes : std::max(result, bytes);
  }
  return result;
}

std::vector<std::size_t> LayoutMemory::largest_by_stage(const engine::EngineOptions& options) {
  const int micro_batches = micro_batches_measured(options);
  const auto stages = stages_of(options, micro_batches);
  std::vector<std::size_t> bytes;
  for (const auto& stage : *stages) {
    bytes.push_back(largest_of(options, stage, micro_batches));
  }
  return bytes;
}

}  // namespace trireme::plan
