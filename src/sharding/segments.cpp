// SPDX-License-Identifier: Apache-2.0
// Runs of elements that a rank updates.
#include "sharding/segments.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/philox.hpp"

#include <algorithm>
#include <utility>

namespace trireme::sharding {
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

/// Sharing of a matrix that data-parallel ranks hold rows of.
optim::SharedMatrix sharing_of(const ownership::MatrixOwner& owner,
                               const ownership::MatrixShape& shape, int number) {
  optim::SharedMatrix sharing;
  for (std::size_t index = 0; index < owner.ranges.size(); ++index) {
    const auto& [rank, begin, end] = owner.ranges[index];
    const auto& rows = owner.rows[index];
    sharing.shares.push_back({rank, {{rows.begin, 0}, {rows.size(), shape.columns}}, {begin, end}});
  }
  sharing.gram_ranks = owner.square_ranks;
  sharing.number = number;
  return sharing;
}

class Collector {
 public:
  Collector(const Options& options, const model::StageParameters& stage)
      : stage_(stage), mesh_(options.mesh), rank_(options.rank), rounding_(options.rule.rounding) {}

  void add(layout::FlatRange owned, optim::Content content) {
    auto& size =
        content == optim::Content::matrix ? updates_.sizes.matrices : updates_.sizes.elements;
    updates_.buckets.push_back({.flat = owned, .state_begin = size, .content = content});
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
  Updates take() { return std::move(updates_); }

 private:
  /// True when the last bucket shares a run, which is the last segment then.
  bool add_run(layout::FlatRange run, const model::FusedParameter& fused) {
    const auto& bucket = updates_.buckets.back();
    const auto begin = std::max(bucket.flat.begin, run.begin);
    const auto end = std::min(bucket.flat.end, run.end);
    if (begin >= end) return false;
    const auto state_begin = bucket.state_begin + begin - bucket.flat.begin;
    updates_.segments.push_back({.flat = {begin, end},
                                 .state_begin = state_begin,
                                 .decays = fused.decays,
                                 .content = bucket.content});
    return true;
  }
  void add_piece(const model::ShardPiece& piece, const model::FusedParameter& fused) {
    if (!add_run(piece.flat, fused)) return;
    auto& segment = updates_.segments.back();
    segment.place = place_in_tensor(stage_, piece, segment.flat.begin);
    if (segment.content == optim::Content::elements) return;
    const auto& shape = stage_.parameters()[piece.parameter].tensor.shape;
    segment.shape = {shape[0], shape[1]};
    segment.blocks = stage_.blocks_of(stage_.parameters()[piece.parameter]);
    segment.renewal_turn = stage_.renewal_turn(piece);
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
  Updates updates_;
};

}  // namespace

optim::Content content_of(const model::StageParameters& stage, std::size_t bucket) {
  return stage.is_owned(bucket) ? optim::Content::matrix : optim::Content::elements;
}

Updates collect(const Options& options, const model::StageParameters& stage,
                const std::optional<int>& shard) {
  Collector collector(options, stage);
  for (std::size_t bucket = 0; bucket < stage.flat().buckets.size(); ++bucket) {
    collector.add(
        shard ? stage.flat().shard_of_bucket(bucket, *shard) : stage.flat().buckets[bucket],
        content_of(stage, bucket));
  }
  return collector.take();
}

}  // namespace trireme::sharding
