// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace trireme::layout {

/// How many layers each position of a pipeline holds (positions in the model's order, position i on
/// stage i % stages), so that no stage computes much more than another: the last position also has
/// the head, which weighs as much as `head_layers` layers. From an even assignment layers move from
/// the stage that has most to one that has least, as long as that helps. A position keeps a layer,
/// but for the last one where the head is work enough. layers >= stages * virtual_stages.
std::vector<int> balanced_counts(int layers, int stages, int virtual_stages, double head_layers);

/// The mean of the stages' work over the largest stage's: 1 is a pipeline that never waits for one.
double balance(const std::vector<int>& counts, int stages, double head_layers);

}  // namespace trireme::layout
