// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/ownership.hpp"

#include "layout/ownership/plans/shard_writer.hpp"

#include <span>
#include <vector>

namespace trireme::layout {

OwnershipPlan plan_contiguous(std::span<const OwnedTensor> tensors,
                              const OwnershipOptions& options);

/// Plan of `shared` without tensor parallelism: the sequence of all matrices is cut where a rank
/// has its share of the work, between rows of a matrix if need be.
OwnershipPlan plan_matrix_cuts(std::span<const OwnedTensor> tensors,
                               const OwnershipOptions& options);

/// Equal padded shards.
OwnershipPlan plan_padded(std::span<const OwnedTensor> tensors, const OwnershipOptions& options);

/// Takes buckets and pieces, and fills what follows from a plan's matrices and loads.
void finish(std::span<const OwnedTensor> tensors, const OwnershipOptions& options,
            ShardWriter& writer, OwnershipPlan& plan);

}  // namespace trireme::layout
