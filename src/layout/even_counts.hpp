// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace trireme::layout {

/// Number of layers of each position of the model; the remainder goes to the middle, and rather
/// before than after it.
std::vector<int> even_counts(int layers, int positions);

}  // namespace trireme::layout
