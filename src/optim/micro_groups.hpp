// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/optim/state.hpp"

#include <span>
#include <vector>

namespace trireme::optim {

/// Matrices of one shape, and one cut into parts, that are updated together.
struct MatrixRun {
  ownership::MatrixShape shape;
  std::int64_t blocks = 1;
  /// Elements in front of its first one in the memory of the group's whole matrices.
  std::int64_t begin = 0;
  std::vector<std::size_t> segments;
};

/// Matrices that go to their owners in one exchange, and come back in another. All ranks that
/// exchange parts form the same groups, because they see the same shapes and owners.
struct MatrixGroup {
  struct Member {
    std::size_t segment = 0;
    /// Elements in front of the own part in the memory of parts: [ranks, region].
    std::int64_t begin = 0;
  };
  /// In the order of each owner's region; of all owners.
  std::vector<Member> members;
  /// Room for the most elements that any rank holds of any one owner's matrices.
  std::int64_t region = 0;
  /// Matrices that are owned here, in the order of `members`.
  std::vector<MatrixRun> owned;
  std::int64_t owned_elements = 0;
};

struct GroupLimits {
  /// Most elements of an owner's matrices in a group, unless it is one matrix.
  std::int64_t group_elements = 0;
  /// Most elements of a run's matrices.
  std::int64_t run_elements = 0;
};

/// Groups of the segments that are matrices nobody shares, those with most elements first. `ranks`:
/// that exchange parts; `rank`: this one.
std::vector<MatrixGroup> form_groups(std::span<const Segment> segments, int ranks, int rank,
                                     const GroupLimits& limits);

}  // namespace trireme::optim
