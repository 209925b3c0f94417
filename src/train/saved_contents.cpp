// SPDX-License-Identifier: Apache-2.0
#include "train/saved_contents.hpp"

#include "trireme/engine/parameter_parts.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace trireme::train {
namespace {

using layout::Axis;

/// Shard pieces of each bucket that a checkpoint takes from this rank: copies on other
/// tensor-parallel ranks or stages are left out, and with them whole buckets.
std::vector<std::vector<const model::ShardPiece*>> saved_pieces(
    const model::StageParameters& stage) {
  const auto& buckets = stage.flat().buckets;
  std::vector<std::vector<const model::ShardPiece*>> pieces(buckets.size());
  for (const auto& fused : stage.fused_parameters()) {
    for (const auto& piece : fused.pieces) {
      if (!piece.primary || piece.flat.size() == 0) continue;
      const auto bucket =
          std::partition_point(buckets.begin(), buckets.end(),
                               [&](const auto& each) { return each.end <= piece.flat.begin; });
      pieces[static_cast<std::size_t>(bucket - buckets.begin())].push_back(&piece);
    }
  }
  return pieces;
}

/// Files of the ranks that share what `rank` holds, which is the first of them.
checkpoint::FileRange files_of(const layout::Mesh& mesh, base::Rank rank) {
  const int count = mesh.degree(Axis::data);
  const int stride = count > 1 ? mesh.stride(Axis::data) : 1;
  return {static_cast<std::size_t>(rank.value()), static_cast<std::size_t>(stride),
          static_cast<std::size_t>(count)};
}

void add_rank(const engine::EngineOptions& options, std::span<const std::string> prefixes,
              checkpoint::ContentsBuilder& builder) {
  const auto stage = engine::stage_parameters(options);
  const auto pieces = saved_pieces(stage);
  for (std::size_t bucket = 0; bucket < pieces.size(); ++bucket) {
    if (pieces[bucket].empty()) continue;
    const auto range = stage.flat().buckets[bucket];
    for (const auto& prefix : prefixes) {
      const auto number =
          builder.add_bucket(device::DType::f32, files_of(options.mesh, options.rank),
                             range.size() / stage.flat().shards);
      for (const auto* piece : pieces[bucket]) {
        const auto& tensor = stage.parameters()[piece->parameter].tensor;
        builder.add_part(prefix + tensor.name, tensor.shape, piece->box, number,
                         piece->flat.begin - range.begin);
      }
    }
  }
}

}  // namespace

checkpoint::Contents saved_contents(const engine::EngineOptions& options,
                                    std::span<const std::string> prefixes) {
  checkpoint::ContentsBuilder builder;
  auto other = options;
  for (int rank = 0; rank < options.mesh.world_size(); ++rank) {
    other.rank = base::Rank(rank);
    if (options.mesh.coordinate(Axis::data, other.rank) == 0) add_rank(other, prefixes, builder);
  }
  return builder.take();
}

std::vector<device::Tensor> saved_shards(engine::Engine& engine) {
  const auto pieces = saved_pieces(engine::stage_parameters(engine.options()));
  std::vector<device::Tensor> shards;
  for (auto& [bucket, prefix, values] : engine.bucket_shards()) {
    if (!pieces[bucket].empty()) shards.push_back(std::move(values));
  }
  return shards;
}

}  // namespace trireme::train
