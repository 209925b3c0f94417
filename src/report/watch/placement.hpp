// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/watch.hpp"

namespace trireme::report {

/// Nodes of the newest start, in the order of their first ranks, from the last lines of the ranks'
/// logs; empty if the first rank has none. More than 1024 ranks are not looked at.
std::vector<NodeRanks> nodes_of(const std::filesystem::path& run);

/// Nodes of these ranks, in the order of their first ones.
std::vector<NodeRanks> nodes_of(const std::vector<telemetry::RankTime>& times);
/// Middle one of the times; absent if there is none.
double median_ms(const std::vector<telemetry::RankTime>& times);

/// "0-3, 8": numbers in ascending order.
std::string ranges_text(const std::vector<int>& numbers);

}  // namespace trireme::report
