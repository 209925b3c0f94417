// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/watch.hpp"

#include <vector>

namespace trireme::report {

/// Nodes with their ranks and stages, of many those that hold the others up, and below them the
/// median time of a rank where it is known. `stage_waits`: shares of a step that each stage waits;
/// empty where they are not known.
std::vector<Span> node_lines(const RunView& view, const std::vector<double>& stage_waits,
                             std::vector<NodeRanks> nodes, double median_ms);

}  // namespace trireme::report
