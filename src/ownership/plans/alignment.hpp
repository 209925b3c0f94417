// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace trireme::ownership {

/// Elements with the padding behind them.
inline std::int64_t aligned(std::int64_t elements, std::int64_t alignment) {
  return (elements + alignment - 1) / alignment * alignment;
}

}  // namespace trireme::ownership
