// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/placement.hpp"

#include <vector>

namespace trireme::layout {

/// Number of layers of each position of a pipeline, in the model's order, balanced over the stages:
/// the last position also has the head, which weighs as much as `head_layers` layers. Starting from
/// an even assignment, layers move from the stage with most work to the one with least, as long as
/// that helps. A position keeps at least one layer, except the last one where the head is work
/// enough. layers >= placement.positions().
std::vector<int> balanced_counts(int layers, const Placement& placement, double head_layers);

/// Mean work of the stages over the largest stage's: 1 is a pipeline in which no stage waits.
double balance(const std::vector<int>& counts, const Placement& placement, double head_layers);

}  // namespace trireme::layout
