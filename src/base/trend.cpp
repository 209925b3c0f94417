// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/trend.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::base {
namespace {

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
