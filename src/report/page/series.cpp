// SPDX-License-Identifier: Apache-2.0
#include "series.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::report {

std::vector<Bucket> buckets_of(std::size_t points, std::size_t most) {
  const auto count = std::min(points, most);
  std::vector<Bucket> buckets;
  buckets.reserve(count);
  for (std::size_t index = 0; index < count; ++index) {
    buckets.push_back({points * index / count, points * (index + 1) / count});
  }
  return buckets;
}

Range range_of(std::span<const double> values) {
  Range range;
  double sum = 0;
  double count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    range.lowest = count == 0 ? value : std::min(range.lowest, value);
    range.highest = count == 0 ? value : std::max(range.highest, value);
    sum += value;
    ++count;
  }
  if (count > 0) range.mean = sum / count;
  return range;
}

std::vector<Range> ranges_of(std::span<const double> values, std::span<const Bucket> buckets) {
  std::vector<Range> ranges;
  for (const auto& bucket : buckets) {
    ranges.push_back(range_of(values.subspan(bucket.begin, bucket.end - bucket.begin)));
  }
  return ranges;
}

std::vector<double> smoothed(std::span<const double> values, double weight) {
  std::vector<double> result;
  double average = 0;
  double share = 0;  // of the average that is not its start's zero
  for (const double value : values) {
    if (std::isfinite(value)) {
      average = weight * average + (1 - weight) * value;
      share = weight * share + (1 - weight);
    }
    result.push_back(std::isfinite(value) ? average / share : value);
  }
  return result;
}

std::vector<double> ticks_of(double low, double high, std::size_t most) {
  std::vector<double> ticks;
  if (!(high > low) || most == 0) return ticks;
  const double rough = (high - low) / static_cast<double>(most);
  double step = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (factor * step >= rough) {
      step *= factor;
      break;
    }
  }
  // Numbers of steps, so that no tick is 0.30000000000000004.
  for (double index = std::ceil(low / step); index * step <= high; ++index) {
    ticks.push_back(index * step);
    if (ticks.size() > most) break;
  }
  return ticks;
}

std::string short_text(double number) {
  if (!std::isfinite(number)) return "–";
  const double size = std::fabs(number);
  if (size >= 1e12) return base::format("{:.4g} T", number / 1e12);
  if (size >= 1e9) return base::format("{:.4g} G", number / 1e9);
  if (size >= 1e6) return base::format("{:.4g} M", number / 1e6);
  if (size >= 1e4) return base::format("{:.4g} k", number / 1e3);
  return base::format("{:.4g}", number);
}

}  // namespace trireme::report
