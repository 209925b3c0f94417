// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/ownership.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace trireme::layout {

/// Ranks that may share matrices: of one node, or of one tensor-parallel group.
struct SharingGroup {
  int first_rank = 0;
  /// FLOPs of each rank so far.
  std::vector<double> load;
  /// Elements of each rank's shard so far, and at most. Tensor-parallel ranks exchange what they
  /// hold, so there it is without limit.
  std::vector<std::int64_t> elements;
  std::int64_t most_elements = 0;
};

/// Owners of the matrices (indices into the tensors) among the ranks of a group. As few matrices
/// are shared, the largest first, as bring the group's largest load close to its mean, and all
/// shards below their limit where that is possible at all. Adds to loads and elements.
std::vector<MatrixOwner> share_in_group(std::span<const OwnedTensor> tensors,
                                        std::span<const std::size_t> matrices,
                                        const OwnershipOptions& options, SharingGroup& group);

}  // namespace trireme::layout
