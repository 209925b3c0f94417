// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

/// Curves of numbers as text in a terminal.
namespace trireme::base {

/// Characters that a terminal shows.
enum class Glyphs { ascii, unicode };

/// Curve of numbers in one line of text, of at most so many columns: each column is the mean of its
/// share of the numbers, in eight heights (five in ASCII) from the lowest column to the highest.
/// Equal ones stand in the middle. Columns without a finite number are blank.
std::string sparkline(std::span<const double> numbers, std::size_t columns, Glyphs glyphs);

/// Bar of exactly so many columns, filled to a share of 0 to 1.
std::string bar(double share, std::size_t columns, Glyphs glyphs);

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
