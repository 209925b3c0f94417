// SPDX-License-Identifier: Apache-2.0
#include "trireme/sharding/sharding.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/sharding/assignment.hpp"

#include "sharding/matrix_owners.hpp"
#include "sharding/segments.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace trireme::sharding {

using layout::Axis;

namespace {

/// Order of the matrices in the flat buffers.
ownership::Assignment order_of_matrices(const Options& options) {
  // Every rank updates all of them, whatever the plan.
  if (!options.divides_updates()) return ownership::Assignment::padded;
  // Data-parallel ranks own matrices whole where tensor-parallel ones share them.
  const bool shares_inside =
      options.assignment == ownership::Assignment::shared && options.mesh.degree(Axis::tensor) > 1;
  return shares_inside ? ownership::Assignment::contiguous : options.assignment;
}

/// The facts that the memory of an update depends on.
std::string memory_key(const Updates& updates) {
  std::string key;
  for (const auto& bucket : updates.buckets) key += base::format("{} ", bucket.flat.size());
  for (const auto& segment : updates.segments) {
    key +=
        base::format("{}:{}:{}x{}/{}@{} ", static_cast<int>(segment.content), segment.flat.size(),
                     segment.shape.rows, segment.shape.columns, segment.blocks, segment.owner);
  }
  return key;
}

/// All shards as one rank has them that updates everything.
Updates joined(Updates all, const OwnedShards& owned) {
  all.sizes.owner = owned.state_elements * std::ssize(owned.shards);
  int number = 0;
  for (std::size_t shard = 0; shard < owned.shards.size(); ++shard) {
    for (const auto& segment : owned.shards[shard].segments) {
      if (segment.content != optim::Content::matrix) continue;
      const auto found = std::find_if(all.segments.begin(), all.segments.end(),
                                      [&](const auto& one) { return one.flat == segment.flat; });
      TRIREME_EXPECT(found != all.segments.end(), "a matrix lies in one shard");
      found->owner = segment.owner;
      found->sharing = segment.sharing;
      // Matrices of all shards are shared at once.
      if (found->sharing) found->sharing->number = number++;
      found->owner_state_begin =
          segment.owner_state_begin + owned.state_elements * static_cast<std::int64_t>(shard);
    }
  }
  return all;
}

}  // namespace

Sharding::Sharding(const model::ModelConfig& model, const Options& options,
                   std::vector<std::vector<layout::LayerRange>> layers,
                   layout::PlacementKind placement, device::DType products)
    : model_(model),
      options_(options),
      layers_(std::move(layers)),
      placement_(placement),
      products_(products),
      stage_(model, {options.mesh, options.rank, chunks(), options.sequence_parallel, placement},
             options.bucket_elements(),
             {cost_of_matrix(options.rule, products), options.matrices, order_of_matrices(options)},
             options.borders()) {}

Sharding Sharding::seen_by(base::Rank rank) const {
  auto options = options_;
  options.rank = rank;
  return {model_, options, layers_, placement_, products_};
}

const std::vector<layout::LayerRange>& Sharding::chunks() const {
  return layers_[static_cast<std::size_t>(options_.mesh.coordinate(Axis::pipeline, options_.rank))];
}

layout::FlatRange Sharding::updated(std::size_t bucket) const {
  return divides_updates() ? counted(bucket) : stage_.flat().buckets[bucket];
}

layout::FlatRange Sharding::counted(std::size_t bucket) const {
  return stage_.flat().shard_of_bucket(bucket, replica());
}

Updates Sharding::updates_of(int replica) const {
  const auto shard = divides_updates() ? std::optional(replica) : std::nullopt;
  if (!optim::traits(options_.rule.kind).updates_matrices) return collect(options_, stage_, shard);
  auto owned = owned_shards(options_, stage_);
  if (!shard) return joined(collect(options_, stage_, shard), owned);
  auto& own = owned.shards[static_cast<std::size_t>(replica)];
  own.sizes.owner = owned.state_elements;
  return std::move(own);
}

std::vector<int> Sharding::alike_shards() const {
  const int ranks = options_.mesh.degree(layout::replica_axes);
  std::vector<int> alike(static_cast<std::size_t>(ranks), 0);
  if (!options_.divides_matrices()) return alike;
  const auto owned = owned_shards(options_, stage_);
  std::map<std::string, int> first;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& shard = owned.shards[static_cast<std::size_t>(rank)];
    const bool shares =
        std::any_of(shard.segments.begin(), shard.segments.end(),
                    [](const auto& segment) { return segment.sharing.has_value(); });
    // A shared matrix gives each of its ranks work of its own.
    const auto key = shares ? base::format("rank {}", rank) : memory_key(shard);
    alike[static_cast<std::size_t>(rank)] = first.try_emplace(key, rank).first->second;
  }
  return alike;
}

}  // namespace trireme::sharding
