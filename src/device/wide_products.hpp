// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/wide_products.hpp"

#include "device/elements.hpp"

/// What backends share of products with sums in fp64.
namespace trireme::device {

inline void expect_wide(const WideMatrix& matrix) {
  const auto& [high, low] = matrix;
  expect_same_shape(high, low);
  TRIREME_EXPECT(high.rank() == 2 && high.contiguous() && low.contiguous() &&
                     high.dtype() == DType::f32 && low.dtype() == DType::f32,
                 "a wide matrix: high " + high.text() + ", low " + low.text());
}

inline void expect_operands(const SymmetricRankUpdate& operation) {
  const auto& [x, sum, kept] = operation;
  expect_wide(sum);
  TRIREME_EXPECT(x.rank() == 2 && x.contiguous() && x.dtype() == DType::f32 &&
                     sum.high.dim(0) == x.dim(1) && sum.high.dim(1) == x.dim(1),
                 "rank update: x " + x.text() + ", sum " + sum.high.text());
}

inline void expect_operands(const WideProduct& operation) {
  const auto& [x, s, y] = operation;
  expect_wide(s);
  TRIREME_EXPECT(x.rank() == 2 && y.rank() == 2 && x.contiguous() && y.contiguous() &&
                     x.dtype() == DType::f32 && y.dtype() == DType::f32 &&
                     s.high.dim(0) == x.dim(1) && y.dim(0) == x.dim(0) &&
                     y.dim(1) == s.high.dim(1) && y.raw() != x.raw(),
                 "wide product: x " + x.text() + ", s " + s.high.text() + ", y " + y.text());
}

inline double wide_at(const float* high, const float* low, std::int64_t at) {
  return static_cast<double>(high[at]) + static_cast<double>(low[at]);
}

inline void set_wide(float* high, float* low, std::int64_t at, double value) {
  high[at] = static_cast<float>(value);
  low[at] = static_cast<float>(value - static_cast<double>(high[at]));
}

}  // namespace trireme::device
