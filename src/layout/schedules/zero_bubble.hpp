// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/schedule.hpp"

#include <vector>

namespace trireme::layout {

/// ZB-H1 or ZB-H2: one chunk a stage. H1 holds as many micro-batches' activations as 1f1b's first
/// stage, on all stages: p of them. H2 holds 2p - 1.
std::vector<Action> zero_bubble_actions(const Schedule& schedule, int stage);

/// ZB-V, [stage]: two chunks a stage, activations of at most 2p chunks, which are p stages'.
std::vector<std::vector<Action>> zero_bubble_v_actions(const Schedule& schedule);

}  // namespace trireme::layout
