// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/ownership.hpp"

#include <span>
#include <vector>

namespace trireme::layout {

OwnershipPlan plan_contiguous(std::span<const OwnedTensor> tensors,
                              const OwnershipOptions& options);

enum class Sharing { off, on };
/// Plans of equal padded shards: `padded`, or `shared`.
OwnershipPlan plan_equal_shards(std::span<const OwnedTensor> tensors,
                                const OwnershipOptions& options, Sharing sharing);

/// Owners inside one data-parallel rank's tensor-parallel group, with no bound on elements: longest
/// processing time first on the loads so far. Adds to `load`, of all ranks.
std::vector<MatrixOwner> own_in_tensor_group(std::span<const OwnedTensor> tensors,
                                             std::span<const std::size_t> matrices,
                                             const OwnershipOptions& options, int data_rank,
                                             std::vector<double>& load);

/// Numbers the micro-groups of each data-parallel rank: matrices with much work first, until an
/// owner's part of a group is larger than group_bytes.
void form_micro_groups(std::span<const OwnedTensor> tensors, const OwnershipOptions& options,
                       OwnershipPlan& plan);

}  // namespace trireme::layout
