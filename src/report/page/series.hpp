// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/telemetry/run_record.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace trireme::report {

/// Consecutive points that one column of a picture shows.
struct Bucket {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// So many points in at most `most` buckets of sizes that differ by one.
std::vector<Bucket> buckets_of(std::size_t points, std::size_t most);

/// A bucket's finite values; all NaN if there are none. Nothing that a picture shows lies outside
/// of lowest and highest.
struct Range {
  double lowest = telemetry::absent;
  double mean = telemetry::absent;
  double highest = telemetry::absent;
};
Range range_of(std::span<const double> values);
std::vector<Range> ranges_of(std::span<const double> values, std::span<const Bucket> buckets);

/// Exponential moving average with the weight of the past, corrected for its start; what is not
/// finite is left as it is. The page's script does the same.
std::vector<double> smoothed(std::span<const double> values, double weight);

}  // namespace trireme::report
