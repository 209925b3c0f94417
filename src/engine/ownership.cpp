// SPDX-License-Identifier: Apache-2.0
// Which elements and matrices a rank updates.
#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/engine/alike_shards.hpp"
#include "trireme/engine/parameter_parts.hpp"
#include "trireme/optim/matrix_rule.hpp"
#include "trireme/ownership/plan.hpp"

#include "state.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace trireme::engine {

namespace {

/// Place, in the tensor of a shard piece, of the elements from `begin` of the flat buffer on.
device::StochasticRounding place_in_tensor(const model::StageParameters& stage,
                                           const model::ShardPiece& piece, std::int64_t begin) {
  const auto& tensor = stage.parameters()[piece.parameter].tensor;
  const auto& [offset, length] = piece.box;
  TRIREME_EXPECT(length.size() == 1 || length.size() == 2, "parameters are vectors and matrices");
  device::StochasticRounding place;
  place.stream = base::stream_of(tensor.name);
  place.begin = begin - piece.flat.begin;
  place.width = length.back();
  place.stride = tensor.shape.back();
  place.first = length.size() == 1 ? offset[0] : offset[0] * place.stride + offset[1];
  return place;
}

/// Of a matrix that data-parallel ranks hold rows of.
optim::SharedMatrix sharing_of(const ownership::MatrixOwner& owner,
                               const ownership::MatrixShape& shape, int number) {
  optim::SharedMatrix sharing;
  for (std::size_t index = 0; index < owner.ranges.size(); ++index) {
    const auto& [rank, begin, end] = owner.ranges[index];
    const auto& rows = owner.rows[index];
    sharing.sharers.push_back(
        {rank, {{rows.begin, 0}, {rows.size(), shape.columns}}, {begin, end}});
  }
  sharing.square_ranks = owner.square_ranks;
  sharing.number = number;
  return sharing;
}

/// Of one that tensor-parallel ranks hold parts of.
optim::SharedMatrix sharing_of(const ownership::MatrixOwner& owner,
                               const std::vector<layout::Box>& parts, int number) {
  optim::SharedMatrix sharing;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    sharing.sharers.push_back({static_cast<int>(rank), parts[rank], {}});
  }
  for (const auto& [rank, begin, end] : owner.ranges) {
    sharing.sharers[static_cast<std::size_t>(rank)].slice = {begin, end};
  }
  sharing.square_ranks = owner.square_ranks;
  sharing.number = number;
  return sharing;
}

class Collector {
 public:
  Collector(const EngineOptions& options, const model::StageParameters& stage)
      : stage_(stage), mesh_(options.mesh), rank_(options.rank), rounding_(options.rule.rounding) {}

  void add(layout::FlatRange owned, optim::Content content) {
    auto& size =
        content == optim::Content::matrix ? ownership_.sizes.matrices : ownership_.sizes.elements;
    ownership_.buckets.push_back({.flat = owned, .state_begin = size, .content = content});
    for (const auto& fused : stage_.fused_parameters()) {
      const bool whole =
          content == optim::Content::elements && rounding_ == optim::ParameterRounding::nearest;
      if (whole) {
        add_run({fused.pieces.front().flat.begin, fused.pieces.back().flat.end}, fused);
        continue;
      }
      // A run of one tensor each.
      for (const auto& piece : fused.pieces) add_piece(piece, fused);
    }
    size += owned.size();
  }
  Ownership take() { return std::move(ownership_); }

 private:
  /// True when the last bucket shares a run, which is the last segment then.
  bool add_run(layout::FlatRange run, const model::FusedParameter& fused) {
    const auto& bucket = ownership_.buckets.back();
    const auto begin = std::max(bucket.flat.begin, run.begin);
    const auto end = std::min(bucket.flat.end, run.end);
    if (begin >= end) return false;
    const auto state_begin = bucket.state_begin + begin - bucket.flat.begin;
    ownership_.segments.push_back({.flat = {begin, end},
                                   .state_begin = state_begin,
                                   .decays = fused.decays,
                                   .content = bucket.content});
    return true;
  }
  void add_piece(const model::ShardPiece& piece, const model::FusedParameter& fused) {
    if (!add_run(piece.flat, fused)) return;
    auto& segment = ownership_.segments.back();
    segment.place = place_in_tensor(stage_, piece, segment.flat.begin);
    if (segment.content == optim::Content::elements) return;
    const auto& shape = stage_.parameters()[piece.parameter].tensor.shape;
    segment.shape = {shape[0], shape[1]};
    segment.blocks = stage_.blocks_of(stage_.parameters()[piece.parameter]);
    if (const auto* const owner = stage_.sharing_of(piece)) {
      segment.sharing = sharing_of(*owner, segment.shape, static_cast<int>(piece.parameter));
      return;
    }
    TRIREME_EXPECT(segment.flat == piece.flat, "an owner has all that its rank holds of a matrix");
    if (mesh_.degree(layout::Axis::tensor) == 1) return;
    for (const auto rank : mesh_.group(layout::Axis::tensor, rank_)) {
      segment.parts.push_back(
          layout::shard_box(stage_.parameters()[piece.parameter].tensor, mesh_, rank));
    }
  }

  const model::StageParameters& stage_;
  const layout::Mesh& mesh_;
  base::Rank rank_;
  optim::ParameterRounding rounding_;
  Ownership ownership_;
};

/// What a matrix costs its owner, or those who share it.
class MatricesOfRule {
 public:
  explicit MatricesOfRule(const EngineOptions& options)
      : rule_(optim::make_matrix_rule(options.rule, device::DType::f32)),
        shares_(options.assignment == ownership::Assignment::shared) {}

  std::vector<optim::OwnerState> states(const ownership::MatrixShape& shape) const {
    return rule_ ? rule_->owner_states(shape) : std::vector<optim::OwnerState>{};
  }
  std::int64_t state_elements(const ownership::MatrixShape& shape) const {
    std::int64_t sum = 0;
    for (const auto& state : states(shape)) sum += state.shape.rows * state.shape.columns;
    return sum;
  }
  ownership::OwnedTensor work(const optim::Segment& segment) const {
    const auto& [rows, columns] = segment.shape;
    ownership::OwnedTensor work;
    work.shape = segment.shape;
    work.flops =
        static_cast<double>(segment.blocks) * rule_->flops({rows / segment.blocks, columns});
    if (shares_ && segment.blocks == 1 && is_held_once(segment)) {
      work.split = rule_->split(segment.shape);
    }
    return work;
  }

 private:
  /// Key and value heads that are fewer than ranks are held by several.
  static bool is_held_once(const optim::Segment& segment) {
    std::int64_t held = 0;
    for (const auto& part : segment.parts) held += layout::element_count(part);
    return held == segment.shape.rows * segment.shape.columns;
  }

  std::unique_ptr<optim::MatrixRule> rule_;
  bool shares_;
};

/// Gives the matrices of a shard their owners among tensor-parallel ranks, so that these have about
/// as much to compute. Returns the elements of state of each owner.
std::vector<std::int64_t> assign_owners(std::vector<optim::Segment>& segments, int ranks,
                                        const MatricesOfRule& rule) {
  std::vector<optim::Segment*> matrices;
  std::vector<ownership::OwnedTensor> works;
  for (auto& segment : segments) {
    if (segment.content != optim::Content::matrix) continue;
    matrices.push_back(&segment);
    works.push_back(rule.work(segment));
  }
  std::vector<std::int64_t> elements(static_cast<std::size_t>(ranks), 0);
  const auto owners = ownership::divide_matrices(works, ranks);
  for (std::size_t index = 0; index < matrices.size(); ++index) {
    auto& segment = *matrices[index];
    const auto& owner = owners[index];
    if (owner.is_shared()) {
      segment.sharing = sharing_of(owner, segment.parts, static_cast<int>(index));
      continue;
    }
    segment.owner = owner.ranges.front().rank;
    auto& size = elements[static_cast<std::size_t>(segment.owner)];
    segment.owner_state_begin = std::exchange(size, size + rule.state_elements(segment.shape));
  }
  return elements;
}

/// What a rank owns if it has the shards of one or of all data-parallel ranks.
Ownership collect(const EngineOptions& options, const model::StageParameters& stage,
                  const std::optional<int>& shard) {
  Collector collector(options, stage);
  for (std::size_t bucket = 0; bucket < stage.flat().buckets.size(); ++bucket) {
    collector.add(
        shard ? stage.flat().shard_of_bucket(bucket, *shard) : stage.flat().buckets[bucket],
        content_of(stage, bucket));
  }
  return collector.take();
}

/// [data-parallel rank]: its shards, with owners; and the most state of owners that this
/// tensor-parallel rank has of any.
std::pair<std::vector<Ownership>, std::int64_t> owned_shards(const EngineOptions& options,
                                                             const model::StageParameters& stage) {
  const MatricesOfRule rule(options);
  const int ranks = options.mesh.degree(layout::Axis::tensor);
  const auto own =
      static_cast<std::size_t>(options.mesh.coordinate(layout::Axis::tensor, options.rank));
  std::vector<Ownership> shards;
  std::int64_t most = 0;
  for (int shard = 0; shard < stage.flat().shards; ++shard) {
    shards.push_back(collect(options, stage, shard));
    most = std::max(most, assign_owners(shards.back().segments, ranks, rule)[own]);
  }
  return {std::move(shards), most};
}

}  // namespace

optim::Content content_of(const model::StageParameters& stage, std::size_t bucket) {
  return stage.is_owned(bucket) ? optim::Content::matrix : optim::Content::elements;
}

Ownership ownership_of(const EngineOptions& options, const model::StageParameters& stage,
                       int data_rank) {
  const bool sharded = options.zero_level > 0;
  if (!optim::has_matrix_rule(options.rule.kind)) {
    return collect(options, stage, sharded ? std::optional(data_rank) : std::nullopt);
  }
  auto [shards, state_elements] = owned_shards(options, stage);
  if (sharded) {
    auto& own = shards[static_cast<std::size_t>(data_rank)];
    own.sizes.owner = state_elements;
    return std::move(own);
  }
  auto all = collect(options, stage, std::nullopt);
  all.sizes.owner = state_elements * std::ssize(shards);
  int number = 0;
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    for (const auto& segment : shards[shard].segments) {
      if (segment.content != optim::Content::matrix) continue;
      const auto found = std::find_if(all.segments.begin(), all.segments.end(),
                                      [&](const auto& one) { return one.flat == segment.flat; });
      TRIREME_EXPECT(found != all.segments.end(), "a matrix lies in one shard");
      found->owner = segment.owner;
      found->sharing = segment.sharing;
      // Matrices of all shards are shared at once.
      if (found->sharing) found->sharing->number = number++;
      found->owner_state_begin =
          segment.owner_state_begin + state_elements * static_cast<std::int64_t>(shard);
    }
  }
  return all;
}

namespace {

/// All that the memory of an update depends on.
std::string memory_key(const Ownership& ownership) {
  std::string key;
  for (const auto& bucket : ownership.buckets) key += base::format("{} ", bucket.flat.size());
  for (const auto& segment : ownership.segments) {
    key +=
        base::format("{}:{}:{}x{}/{}@{} ", static_cast<int>(segment.content), segment.flat.size(),
                     segment.shape.rows, segment.shape.columns, segment.blocks, segment.owner);
  }
  return key;
}

}  // namespace

std::vector<int> alike_shards(const EngineOptions& options) {
  const int ranks = options.mesh.degree(layout::Axis::data);
  std::vector<int> alike(static_cast<std::size_t>(ranks), 0);
  if (options.zero_level == 0 || !optim::has_matrix_rule(options.rule.kind)) return alike;
  const auto [shards, state_elements] = owned_shards(options, stage_parameters(options));
  std::map<std::string, int> first;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& shard = shards[static_cast<std::size_t>(rank)];
    const bool shares =
        std::any_of(shard.segments.begin(), shard.segments.end(),
                    [](const auto& segment) { return segment.sharing.has_value(); });
    // A shared matrix gives each of its ranks work of its own.
    const auto key = shares ? base::format("rank {}", rank) : memory_key(shard);
    alike[static_cast<std::size_t>(rank)] = first.try_emplace(key, rank).first->second;
  }
  return alike;
}

OwnerStates owner_states(const EngineOptions& options, const model::StageParameters& stage) {
  if (!optim::has_owner_states(options.rule.kind)) return {};
  const MatricesOfRule rule(options);
  const auto [shards, state_elements] = owned_shards(options, stage);
  const int own = options.mesh.coordinate(layout::Axis::tensor, options.rank);
  OwnerStates states;
  states.shard_elements = state_elements;
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    for (const auto& segment : shards[shard].segments) {
      if (segment.content != optim::Content::matrix || segment.owner != own) continue;
      auto begin = segment.owner_state_begin + state_elements * static_cast<std::int64_t>(shard);
      for (const auto& state : rule.states(segment.shape)) {
        const layout::Shape shape{state.shape.rows, state.shape.columns};
        states.parts.push_back({state.name + "/" + matrix_name(stage, segment), shape, begin});
        begin += layout::element_count(shape);
      }
    }
  }
  return states;
}

}  // namespace trireme::engine
