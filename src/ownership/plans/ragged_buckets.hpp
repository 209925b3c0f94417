// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ownership/plans/shard_writer.hpp"

#include <span>
#include <vector>

namespace trireme::ownership {

/// Tensors of a bucket, in the order of backward: matrices in ragged ones, others in equal ones.
struct RaggedBucket {
  ShardWriter::Bucket kind = ShardWriter::Bucket::ragged;
  std::vector<std::size_t> tensors;
};

/// Matrices lie in ragged buckets. Tensors that may be cut anywhere lie in buckets of their own, in
/// equal shards: a large one in front of the matrices, all others behind them.
std::vector<RaggedBucket> ragged_buckets(std::span<const OwnedTensor> tensors,
                                         const PlanOptions& options);

}  // namespace trireme::ownership
