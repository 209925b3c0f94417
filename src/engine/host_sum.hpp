// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <span>
#include <vector>

namespace trireme::engine {

/// Collective over the group. Host-blocking: yes. Element-wise sums of doubles of the host in
/// the order of the ranks: the same bits on every rank.
void ordered_sum(comm::ProcessGroup& group, std::span<double> values);

}  // namespace trireme::engine
