// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/ownership/plan.hpp"

#include "ownership/plans/shard_writer.hpp"

#include <span>

namespace trireme::ownership {

Plan plan_contiguous(std::span<const OwnedTensor> tensors, const PlanOptions& options);

/// Plan of `shared` without tensor parallelism: the sequence of all matrices is cut where a rank
/// has its share of the work, between rows of a matrix if need be.
Plan plan_matrix_cuts(std::span<const OwnedTensor> tensors, const PlanOptions& options);

/// Equal padded shards.
Plan plan_padded(std::span<const OwnedTensor> tensors, const PlanOptions& options);

/// Takes buckets and pieces, and fills what follows from a plan's matrices and loads.
void finish(std::span<const OwnedTensor> tensors, const PlanOptions& options, ShardWriter& writer,
            Plan& plan);

}  // namespace trireme::ownership
