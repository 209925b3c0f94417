// SPDX-License-Identifier: Apache-2.0
#include "train/saving/saved_contents.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace trireme::train {
namespace {

using layout::Axis;

/// Files of the ranks that share what `rank` holds, which is the first of them.
checkpoint::FileRange files_of(const layout::Mesh& mesh, base::Rank rank) {
  const int count = mesh.degree(layout::replica_axes);
  // Context-parallel ranks lie inside data-parallel ones, so all are equally far apart.
  const auto inner = mesh.degree(Axis::context) > 1 ? Axis::context : Axis::data;
  const int stride = count > 1 ? mesh.stride(inner) : 1;
  return {static_cast<std::size_t>(rank.value()), static_cast<std::size_t>(stride),
          static_cast<std::size_t>(count)};
}

/// Contents of the replicas that share what one rank holds, which is the first of them.
class RankContents {
 public:
  RankContents(const sharding::Sharding& sharding, checkpoint::ContentsBuilder& builder)
      : sharding_(sharding),
        builder_(builder),
        stage_(sharding.stage()),
        pieces_(sharding.saved_pieces()),
        order_(sharding.saved_buckets()),
        files_(files_of(sharding.options().mesh, sharding.options().rank)) {}

  void add() {
    for (const auto bucket : order_.equal) add_equal(bucket);
    add_owner_states();
    for (int shard = 0; shard < stage_.flat().shards && !order_.cut.empty(); ++shard) {
      add_cut(shard);
    }
  }

 private:
  void add_equal(std::size_t bucket) {
    const auto range = stage_.flat().buckets[bucket];
    for (const auto& prefix : sharding_.state_prefixes(bucket)) {
      const auto number =
          builder_.add_bucket(device::DType::f32, files_, range.size() / stage_.flat().shards);
      for (const auto* piece : pieces_[bucket]) add_piece(prefix, *piece, number, range, 0);
    }
  }

  void add_owner_states() {
    const auto owned = sharding_.owner_states();
    if (owned.shard_elements == 0) return;
    const auto number = builder_.add_bucket(device::DType::f32, files_, owned.shard_elements);
    for (const auto& part : owned.parts) {
      builder_.add_part(part.name, part.shape, layout::whole(part.shape), number, part.begin);
    }
  }

  /// Shards of different lengths: those of all buckets behind each other, in the file of one rank.
  void add_cut(int shard) {
    const checkpoint::FileRange file{files_.at(static_cast<std::size_t>(shard)), 1, 1};
    std::int64_t elements = 0;
    for (const auto bucket : order_.cut) {
      elements += stage_.flat().shard_of_bucket(bucket, shard).size();
    }
    if (elements == 0) return;
    for (const auto& prefix : sharding_.state_prefixes(order_.cut.front())) {
      const auto number = builder_.add_bucket(device::DType::f32, file, elements);
      std::int64_t before = 0;
      for (const auto bucket : order_.cut) {
        const auto range = stage_.flat().shard_of_bucket(bucket, shard);
        for (const auto* piece : pieces_[bucket]) {
          const bool inside = range.begin <= piece->flat.begin && piece->flat.end <= range.end;
          if (inside) add_piece(prefix, *piece, number, range, before);
        }
        before += range.size();
      }
    }
  }

  /// Adds what a run of the flat buffer has of a piece; the run is in the bucket from `before` on.
  void add_piece(const std::string& prefix, const model::ShardPiece& piece, std::size_t number,
                 layout::FlatRange run, std::int64_t before) {
    const auto& tensor = stage_.parameters()[piece.parameter].tensor;
    const auto begin = std::max(run.begin, piece.flat.begin);
    const auto end = std::min(run.end, piece.flat.end);
    auto at = before + begin - run.begin;
    for (const auto& box :
         layout::boxes_of_flat_range(piece.box, begin - piece.flat.begin, end - piece.flat.begin)) {
      builder_.add_part(prefix + tensor.name, tensor.shape, box, number, at);
      at += layout::element_count(box);
    }
  }

  const sharding::Sharding& sharding_;
  checkpoint::ContentsBuilder& builder_;
  const model::StageParameters& stage_;
  std::vector<std::vector<const model::ShardPiece*>> pieces_;
  sharding::SavedBuckets order_;
  checkpoint::FileRange files_;
};

}  // namespace

checkpoint::Contents saved_contents(const sharding::Sharding& sharding) {
  checkpoint::ContentsBuilder builder;
  const auto& mesh = sharding.options().mesh;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    if (mesh.coordinate(layout::replica_axes, base::Rank(rank)) != 0) continue;
    const auto of_rank = sharding.seen_by(base::Rank(rank));
    RankContents(of_rank, builder).add();
  }
  return builder.take();
}

}  // namespace trireme::train
