// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations.hpp"

/// Operations that are two in one for a library's sake, and the two of each: what a backend runs
/// that has no library for them.
namespace trireme::device {

void run_parts(const LinearGeluForward& fused, const auto& run) {
  run(LinearForward{fused.x, fused.w, fused.bias, fused.wide});
  run(GeluForward{fused.wide, fused.y});
}

void run_parts(const LinearBackwardGelu& fused, const auto& run) {
  run(LinearBackwardInput{fused.dy, fused.w, fused.d_wide});
  run(GeluBackward{fused.d_wide, fused.wide, fused.d_wide});
}

}  // namespace trireme::device
