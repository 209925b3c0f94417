// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/model/stage_parameters.hpp"

#include <cstdint>

namespace trireme::layers {

/// First token of this rank's rows of a vocabulary-parallel table.
inline std::int64_t first_token(const model::StageParameters& stage, const char* name) {
  for (const auto& held : stage.fused_parameters()) {
    if (held.name == name) return held.pieces.front().box.offset[0];
  }
  return 0;
}

}  // namespace trireme::layers
