// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace trireme::base {

/// Characters that a terminal shows.
enum class Glyphs { ascii, unicode };

/// Curve of numbers in one line of text, of at most so many columns: each column is the mean of its
/// share of the numbers, in eight heights (five in ASCII) from the lowest column to the highest.
/// Equal ones stand in the middle. Columns without a finite number are blank.
std::string sparkline(std::span<const double> numbers, std::size_t columns, Glyphs glyphs);

/// Bar of exactly so many columns, filled to a share of 0 to 1.
std::string bar(double share, std::size_t columns, Glyphs glyphs);

}  // namespace trireme::base
