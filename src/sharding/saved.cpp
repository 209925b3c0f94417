// SPDX-License-Identifier: Apache-2.0
// The parts of a rank that a checkpoint takes.
#include "trireme/base/contract.hpp"
#include "trireme/optim/matrix_rule.hpp"
#include "trireme/sharding/sharding.hpp"

#include "sharding/matrix_owners.hpp"
#include "sharding/segments.hpp"

#include <algorithm>

namespace trireme::sharding {

using layout::Axis;

std::vector<std::vector<const model::ShardPiece*>> Sharding::saved_pieces() const {
  const auto& buckets = stage_.flat().buckets;
  std::vector<std::vector<const model::ShardPiece*>> pieces(buckets.size());
  for (const auto& fused : stage_.fused_parameters()) {
    for (const auto& piece : fused.pieces) {
      if (!piece.primary || piece.flat.size() == 0) continue;
      const auto first =
          std::partition_point(buckets.begin(), buckets.end(),
                               [&](const auto& each) { return each.end <= piece.flat.begin; });
      for (auto each = first; each != buckets.end() && each->begin < piece.flat.end; ++each) {
        pieces[static_cast<std::size_t>(each - buckets.begin())].push_back(&piece);
      }
    }
  }
  return pieces;
}

SavedBuckets Sharding::saved_buckets() const {
  SavedBuckets saved;
  const auto pieces = saved_pieces();
  for (std::size_t bucket = 0; bucket < pieces.size(); ++bucket) {
    if (pieces[bucket].empty()) continue;
    auto& buckets = stage_.flat().cuts_of_bucket(bucket).empty() ? saved.equal : saved.cut;
    buckets.push_back(bucket);
  }
  return saved;
}

std::vector<std::string> Sharding::state_prefixes(std::size_t bucket) const {
  std::vector<std::string> prefixes{""};
  for (const auto& name : optim::state_names(options_.rule, content_of(stage_, bucket))) {
    prefixes.push_back(name + "/");
  }
  return prefixes;
}

const std::string& Sharding::matrix_name(const optim::Segment& segment) const {
  const std::string* name = nullptr;
  stage_.each_piece(segment.flat, [&](const model::ShardPiece& piece, layout::FlatRange) {
    name = &stage_.parameters()[piece.parameter].tensor.name;
  });
  TRIREME_EXPECT(name != nullptr, "a matrix is a parameter");
  return *name;
}

OwnerStates Sharding::owner_states() const {
  if (!optim::traits(options_.rule.kind).has_owner_states) return {};
  const auto rule = optim::make_matrix_rule(options_.rule, device::DType::f32);
  const auto owned = owned_shards(options_, stage_);
  const int own = options_.mesh.coordinate(Axis::tensor, options_.rank);
  OwnerStates states;
  states.shard_elements = owned.state_elements;
  for (std::size_t shard = 0; shard < owned.shards.size(); ++shard) {
    for (const auto& segment : owned.shards[shard].segments) {
      if (segment.content != optim::Content::matrix || segment.owner != own) continue;
      auto begin =
          segment.owner_state_begin + owned.state_elements * static_cast<std::int64_t>(shard);
      for (const auto& state : rule->owner_states(segment.shape)) {
        const layout::Shape shape{state.shape.rows, state.shape.columns};
        states.parts.push_back({state.name + "/" + matrix_name(segment), shape, begin});
        begin += layout::element_count(shape);
      }
    }
  }
  return states;
}

layout::FlatRange Sharding::saved_owner_states(std::int64_t elements) const {
  if (divides_updates()) return {0, elements};
  const auto count = elements / stage_.flat().shards;
  return {replica() * count, (replica() + 1) * count};
}

std::size_t Sharding::saved_bytes() const {
  const auto pieces = saved_pieces();
  std::size_t elements = 0;
  for (std::size_t bucket = 0; bucket < pieces.size(); ++bucket) {
    if (pieces[bucket].empty()) continue;
    elements += static_cast<std::size_t>(counted(bucket).size()) * state_prefixes(bucket).size();
  }
  elements += static_cast<std::size_t>(owner_states().shard_elements);
  return elements * sizeof(float);
}

}  // namespace trireme::sharding
