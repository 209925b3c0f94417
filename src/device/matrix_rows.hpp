// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/matrices.hpp"

#include "device/elements.hpp"

#include <bit>
#include <cstdint>

/// What backends share of operations on whole matrices and their rows.
namespace trireme::device {

inline void expect_norms(const MatrixNorms& operation) {
  const auto& [x, norms] = operation;
  TRIREME_EXPECT(
      x.rank() == 3 && x.contiguous() && norms.contiguous() && norms.element_count() == x.dim(0),
      "norms " + norms.text() + " of " + x.text());
}

inline void expect_row_factors(const ScaleRows& operation) {
  const auto& [x, factors, y] = operation;
  expect_same_shape(x, y);
  TRIREME_EXPECT(x.rank() == 2 && x.contiguous() && y.contiguous() && factors.contiguous() &&
                     factors.element_count() == x.dim(0),
                 "factors " + factors.text() + " of rows of " + x.text());
}

inline void expect_row_sums(const RowProducts& operation) {
  const auto& [x, y, sums] = operation;
  expect_same_shape(x, y);
  TRIREME_EXPECT(x.rank() == 2 && x.contiguous() && y.contiguous() && sums.contiguous() &&
                     sums.rank() == 2 && sums.dim(0) == x.dim(0) && sums.dim(1) == 2,
                 "sums " + sums.text() + " of rows of " + x.text());
}

/// The words of a double, the low one first.
inline void store_words(double number, std::int32_t* words) {
  const auto bits = std::bit_cast<std::uint64_t>(number);
  words[0] = static_cast<std::int32_t>(bits);
  words[1] = static_cast<std::int32_t>(bits >> 32U);
}

}  // namespace trireme::device
