// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/schedule.hpp"

#include <vector>

namespace trireme::layout {

/// Layers of the chunks of a stage that holds the whole model and takes each unit by itself: the
/// table and the head are chunks without layers.
std::vector<LayerRange> unit_chunks(int layers);

}  // namespace trireme::layout
