// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace trireme::layout {

/// Assignment of whole matrices to the data-parallel ranks that update them (ownership/plan.hpp).
enum class Assignment {
  /// Matrices are placed whole in equal padded shards of each bucket by longest processing time
  /// first; loads are carried from bucket to bucket. Collectives stay those of ZeRO level 1.
  padded,
  /// Every rank has one range of each bucket, and ranges of different lengths: ragged collectives.
  /// Matrices of a bucket lie in the order of their owners, who are chosen by work over all buckets
  /// at once (BucketOrder::by_owner).
  contiguous,
  /// Matrices are cut where a rank has its share of the work, and the ranks on both sides compute
  /// the columns in Gram form: ragged collectives. With tensor parallelism `contiguous` over
  /// data-parallel ranks, and matrices above a fair share are split inside a tensor-parallel group.
  shared
};
/// Names of the assignments, in their order.
inline constexpr std::array<std::string_view, 3> assignment_names{"padded", "contiguous", "shared"};
constexpr std::string_view name(Assignment assignment) {
  return assignment_names.at(static_cast<std::size_t>(assignment));
}

}  // namespace trireme::layout
