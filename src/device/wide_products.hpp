// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Parts that backends share of products with sums in fp64.
namespace trireme::device {

inline double wide_at(const float* high, const float* low, std::int64_t at) {
  return static_cast<double>(high[at]) + static_cast<double>(low[at]);
}

inline void set_wide(float* high, float* low, std::int64_t at, double value) {
  high[at] = static_cast<float>(value);
  low[at] = static_cast<float>(value - static_cast<double>(high[at]));
}

}  // namespace trireme::device
