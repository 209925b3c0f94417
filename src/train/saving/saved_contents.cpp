// SPDX-License-Identifier: Apache-2.0
#include "train/saving/saved_contents.hpp"

#include "trireme/engine/parameter_parts.hpp"

#include <cstddef>

namespace trireme::train {
namespace {

using layout::Axis;

/// Files of the ranks that share what `rank` holds, which is the first of them.
checkpoint::FileRange files_of(const layout::Mesh& mesh, base::Rank rank) {
  const int count = mesh.degree(Axis::data);
  const int stride = count > 1 ? mesh.stride(Axis::data) : 1;
  return {static_cast<std::size_t>(rank.value()), static_cast<std::size_t>(stride),
          static_cast<std::size_t>(count)};
}

void add_rank(const engine::EngineOptions& options, checkpoint::ContentsBuilder& builder) {
  const auto stage = engine::stage_parameters(options);
  const auto pieces = engine::saved_pieces(stage);
  for (std::size_t bucket = 0; bucket < pieces.size(); ++bucket) {
    if (pieces[bucket].empty()) continue;
    const auto range = stage.flat().buckets[bucket];
    for (const auto& prefix : engine::state_prefixes(options, stage, bucket)) {
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
  const auto owned = engine::owner_states(options, stage);
  if (owned.shard_elements == 0) return;
  const auto number = builder.add_bucket(device::DType::f32, files_of(options.mesh, options.rank),
                                         owned.shard_elements);
  for (const auto& part : owned.parts) {
    builder.add_part(part.name, part.shape, layout::whole(part.shape), number, part.begin);
  }
}

}  // namespace

checkpoint::Contents saved_contents(const engine::EngineOptions& options) {
  checkpoint::ContentsBuilder builder;
  auto other = options;
  for (int rank = 0; rank < options.mesh.world_size(); ++rank) {
    other.rank = base::Rank(rank);
    if (options.mesh.coordinate(Axis::data, other.rank) == 0) add_rank(other, builder);
  }
  return builder.take();
}

}  // namespace trireme::train
