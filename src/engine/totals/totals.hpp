// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/axis_groups.hpp"

#include "exact_sum.hpp"

#include <cstdint>
#include <vector>

namespace trireme::engine {

/// Values of a step that are sums over ranks, as each rank has them and then all.
struct Totals {
  ExactSum loss;
  ExactSum squares;  ///< of gradients
  std::int64_t tokens = 0;
  std::vector<std::int64_t> bubble_ns;  ///< [stage]
};

/// Collective over all ranks. Host-blocking: yes. Sums of all values, in one all-reduce where the
/// groups have one of all ranks, and in one along each axis elsewhere: the same bits on every rank
/// and whatever the mesh.
void sum_over_ranks(const comm::AxisGroups& groups, Totals& totals);

/// Collective over the group. Host-blocking: yes.
std::int64_t sum_of_counts(comm::ProcessGroup& group, std::int64_t count);

}  // namespace trireme::engine
