// SPDX-License-Identifier: Apache-2.0
// Memory of ranks that own different matrices, of which as few as may be are measured.
#include "trireme/engine/engine.hpp"
#include "trireme/engine/measure.hpp"

#include "layout_memory.hpp"

#include <algorithm>
#include <utility>

namespace trireme::plan {

using layout::Axis;

namespace {

using Signed = std::int64_t;

Signed of_purpose(const engine::MemoryUse& use, device::Purpose purpose) {
  return static_cast<Signed>(use[static_cast<std::size_t>(purpose)]);
}

/// Bytes by which one rank's updates may take more than the other's beside the same passes. What
/// lies there for the whole step is added up; of what takes turns the larger counts, and how large
/// passes make it is not known.
Signed most_beyond(const engine::MemoryUse& one, const engine::MemoryUse& other) {
  Signed bytes = 0;
  for (const auto purpose : engine::all_purposes) {
    const auto more = of_purpose(one, purpose) - of_purpose(other, purpose);
    const bool takes_turns =
        purpose == device::Purpose::workspace || purpose == device::Purpose::communication;
    bytes += takes_turns ? std::max<Signed>(more, 0) : more;
  }
  return bytes;
}

}  // namespace

base::Rank LayoutMemory::rank_of(const layout::Mesh& mesh, int stage, int tensor, int data) {
  const auto on_stage = mesh.moved(base::Rank{0}, Axis::pipeline, stage);
  return mesh.moved(mesh.moved(on_stage, Axis::data, data), Axis::tensor, tensor);
}

LayoutMemory::Key LayoutMemory::owners_key(const engine::EngineOptions& options,
                                           const Stage& stage) {
  const auto& sharding = options.sharding;
  Key key{sharding.mesh.degree(Axis::tensor),
          sharding.mesh.degree(Axis::data),
          sharding.mesh.degree(Axis::pipeline) > 1 ? 1 : 0,
          sharding.zero_level,
          sharding.sequence_parallel == model::SequenceParallel::on ? 1 : 0,
          static_cast<std::int64_t>(sharding.assignment),
          stage.is_first ? 1 : 0,
          stage.is_last ? 1 : 0};
  key.insert(key.end(), stage.layers.begin(), stage.layers.end());
  return key;
}

LayoutMemory::Members LayoutMemory::members_of(const engine::EngineOptions& options,
                                               const Stage& stage) {
  const auto& mesh = options.sharding.mesh;
  const int tensor = mesh.degree(Axis::tensor);
  return found_or_made(members_, owners_key(options, stage), [&] {
    std::vector<Member> members;
    const bool has_owners = optim::traits(options.sharding.rule.kind).updates_matrices;
    // The last rank has one of the larger parts of every tensor that is cut unevenly.
    if (owner_ == Owner::rank && !has_owners) {
      members.push_back({tensor - 1, 0, mesh.degree(Axis::data)});
      return std::make_shared<const std::vector<Member>>(std::move(members));
    }
    auto of_rank = options;
    for (int part = 0; part < tensor; ++part) {
      of_rank.sharding.rank = rank_of(mesh, stage.index, part, 0);
      std::map<int, int> counts;
      for (const int shard : engine::sharding_of(of_rank).alike_shards()) ++counts[shard];
      for (const auto& [shard, count] : counts) members.push_back({part, shard, count});
    }
    return std::make_shared<const std::vector<Member>>(std::move(members));
  });
}

engine::MemoryUse LayoutMemory::use_of_updates(const engine::EngineOptions& options,
                                               const Stage& stage, const Member& member) {
  auto key = owners_key(options, stage);
  key.insert(key.end(), {member.tensor, member.data});
  return found_or_made(updates_, key, [&] {
    auto small = options;
    const auto& mesh = options.sharding.mesh;
    small.sharding.rank = rank_of(mesh, stage.index, member.tensor, member.data);
    small.memory.recompute = {};
    auto& schedule = small.schedule;
    schedule.micro_batch = 1;
    constexpr std::int64_t fewest_rows = 16;
    schedule.sequence_length = fewest_rows * mesh.degree(Axis::tensor);
    // Interleaved schedules take micro-batches in multiples of the stages.
    schedule.micro_batches = mesh.degree(Axis::pipeline);
    return engine::measure(small);
  });
}

std::size_t LayoutMemory::largest_of(const engine::EngineOptions& options, const Stage& stage,
                                     int micro_batches) {
  const auto members = members_of(options, stage);
  if (members->size() == 1) return bytes_of(options, stage, members->front(), micro_batches);
  std::vector<std::pair<engine::MemoryUse, Member>> descending;
  for (const auto& member : *members) {
    descending.emplace_back(use_of_updates(options, stage, member), member);
  }
  std::stable_sort(descending.begin(), descending.end(), [](const auto& one, const auto& other) {
    return engine::total_bytes(one.first) > engine::total_bytes(other.first);
  });
  const auto& first = descending.front();
  const auto of_first = bytes_of(options, stage, first.second, micro_batches);
  auto largest = of_first;
  for (const auto& [updates, member] : descending) {
    const auto most = static_cast<Signed>(of_first) + most_beyond(updates, first.first);
    if (most <= static_cast<Signed>(largest)) continue;
    largest = std::max(largest, bytes_of(options, stage, member, micro_batches));
  }
  return largest;
}

}  // namespace trireme::plan
