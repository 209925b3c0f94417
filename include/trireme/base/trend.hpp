// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/sparkline.hpp"

#include <span>

namespace trireme::base {

/// Direction of a curve: what its last numbers say beyond their noise.
enum class Trend {
  unknown,  ///< too few numbers, or one that is not finite
  falls,
  level,  ///< within the noise
  rises
};

/// Compares the means of the newer and the older half: they differ if they are further apart than
/// twice the standard error of their difference. Needs eight numbers.
Trend trend_of(std::span<const double> numbers);

/// " ↘", or " v" in ASCII: to stand behind a number; empty where the trend is unknown.
const char* arrow_of(Trend trend, Glyphs glyphs);

}  // namespace trireme::base
