// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"

#include <cstdint>

namespace trireme::device {

/// Numbers that a dropout mask uses. The mask of element (row, column) depends on the key and on
/// global indices alone, so every layout draws the same mask.
struct Dropout {
  float rate = 0.0F;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  /// Global index of row r is first_row + r; of column c first_column + c, of `width` columns.
  std::int64_t first_row = 0;
  std::int64_t first_column = 0;
  std::int64_t width = 0;
  /// i32 [2]: the low and the high word of a number that first_row counts from, read when the
  /// kernel runs; empty: 0. A CUDA graph that is captured once runs with other numbers later.
  Tensor row_base{};

  constexpr bool has_valid_rate() const { return rate >= 0.0F && rate < 1.0F; }
};

}  // namespace trireme::device
