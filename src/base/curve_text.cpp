// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/curve_text.hpp"

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

struct Mean {
  double mean = 0;
  /// Square of the standard error.
  double squared_error = 0;
};

Mean mean_of(std::span<const double> numbers) {
  const auto count = static_cast<double>(numbers.size());
  Mean result;
  for (const double number : numbers) result.mean += number / count;
  for (const double number : numbers) {
    const double off = number - result.mean;
    result.squared_error += off * off / (count * (count - 1));
  }
  return result;
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

Trend trend_of(std::span<const double> numbers) {
  constexpr std::size_t least_numbers = 8;
  const bool finite = std::all_of(numbers.begin(), numbers.end(),
                                  [](double number) { return std::isfinite(number); });
  if (numbers.size() < least_numbers || !finite) return Trend::unknown;
  const auto half = numbers.size() / 2;
  const auto older = mean_of(numbers.first(numbers.size() - half));
  const auto newer = mean_of(numbers.last(half));
  const double apart = newer.mean - older.mean;
  const double noise = 2 * std::sqrt(older.squared_error + newer.squared_error);
  if (std::abs(apart) <= noise) return Trend::level;
  return apart < 0 ? Trend::falls : Trend::rises;
}

const char* arrow_of(Trend trend, Glyphs glyphs) {
  const bool unicode = glyphs == base::Glyphs::unicode;
  switch (trend) {
    case Trend::falls:
      return unicode ? " ↘" : " v";
    case Trend::level:
      return unicode ? " →" : " -";
    case Trend::rises:
      return unicode ? " ↗" : " ^";
    case Trend::unknown:
      break;
  }
  return "";
}

}  // namespace trireme::base
