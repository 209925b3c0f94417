// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/schedule.hpp"

#include <string>

namespace trireme::layout {

/// "backward of micro-batch 3 of virtual stage 1".
std::string text(const Schedule& schedule, const Action& action);

inline bool gives_input_gradient(ActionKind kind) {
  return kind == ActionKind::backward || kind == ActionKind::backward_input;
}

/// True if this action releases a micro-batch's activations.
inline bool releases(ActionKind kind) {
  return kind == ActionKind::backward || kind == ActionKind::backward_weight;
}

}  // namespace trireme::layout
