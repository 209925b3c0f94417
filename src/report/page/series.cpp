// SPDX-License-Identifier: Apache-2.0
#include "series.hpp"

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

}  // namespace trireme::report
