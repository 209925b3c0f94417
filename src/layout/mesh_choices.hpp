// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/mesh.hpp"
#include "trireme/layout/parallel_rules.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

/// Proposals where degrees and ranks do not match. Private to the room.
namespace trireme::layout {

/// Test of a mesh against conditions beyond the world size (a model, a batch).
using Suits = std::function<bool(const Mesh&)>;

/// Range from 1 to more than any machine has: a mistyped number ends here and not in the allocator.
constexpr int max_world_size = 1 << 24;

/// Saturated product: above the range of a rank number.
constexpr std::int64_t too_many_ranks = std::numeric_limits<int>::max();

/// Product; the largest number where it is more.
std::int64_t saturated(std::int64_t first, std::int64_t second);

/// The axes of a mesh with the degrees of an arrangement, 1 where one is not known; everything
/// above the range of a rank counts as its end.
std::vector<AxisExtent> extents_of(const ParallelArrangement& arrangement);

/// Product of positive degrees; everything above the range of a rank counts as its end.
std::int64_t saturated_product(const std::vector<AxisExtent>& axes);

/// The text of degrees whose product is not the world size, with up to three nearest choices that
/// suit; without `suits` all do.
base::Failure wrong_product(std::vector<AxisExtent> axes, int world_size, const Suits& suits);

}  // namespace trireme::layout
