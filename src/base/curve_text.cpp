// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/sparkline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace trireme::base {
namespace {

constexpr std::array<const char*, 8> blocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, 5> marks{"_", ".", "-", "=", "^"};

/// Means of consecutive shares of the numbers; NaN where a share has no finite one.
std::vector<double> column_means(std::span<const double> numbers, std::size_t columns) {
  std::vector<double> means;
  const auto count = std::min(columns, numbers.size());
  for (std::size_t column = 0; column < count; ++column) {
    const auto begin = column * numbers.size() / count;
    const auto end = (column + 1) * numbers.size() / count;
    double sum = 0;
    double finite = 0;
    for (auto at = begin; at < end; ++at) {
      if (!std::isfinite(numbers[at])) continue;
      sum += numbers[at];
      ++finite;
    }
    means.push_back(finite > 0 ? sum / finite : std::numeric_limits<double>::quiet_NaN());
  }
  return means;
}

/// Height 0 to `heights` - 1 of a share of 0 to 1.
std::size_t height_of(double share, std::size_t heights) {
  const auto height = static_cast<std::size_t>(share * static_cast<double>(heights));
  return std::min(height, heights - 1);
}

}  // namespace

std::string sparkline(std::span<const double> numbers, std::size_t columns, Glyphs glyphs) {
  const auto means = column_means(numbers, columns);
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -lowest;
  for (const double mean : means) {
    if (std::isnan(mean)) continue;
    lowest = std::min(lowest, mean);
    highest = std::max(highest, mean);
  }
  std::string text;
  for (const double mean : means) {
    if (std::isnan(mean)) {
      text += ' ';
      continue;
    }
    const double share = highest > lowest ? (mean - lowest) / (highest - lowest) : 0.5;
    text += glyphs == Glyphs::unicode ? blocks[height_of(share, blocks.size())]
                                      : marks[height_of(share, marks.size())];
  }
  return text;
}

std::string bar(double share, std::size_t columns, Glyphs glyphs) {
  const double within = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  const auto full = static_cast<std::size_t>(within * static_cast<double>(columns));
  std::string text;
  for (std::size_t column = 0; column < columns; ++column) {
    const bool is_full = column < full;
    if (glyphs == Glyphs::unicode) {
      text += is_full ? "━" : "─";
    } else {
      text += is_full ? '#' : '.';
    }
  }
  return text;
}

}  // namespace trireme::base
