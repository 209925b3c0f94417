// SPDX-License-Identifier: Apache-2.0
#include "report/page/series.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace trireme;

TEST_CASE("buckets cover all points once, in sizes that differ by one") {
  for (const std::size_t points : {0U, 1U, 599U, 600U, 601U, 1000U, 10'007U}) {
    const auto buckets = report::buckets_of(points, 600);
    CHECK(buckets.size() == std::min<std::size_t>(points, 600));
    std::size_t next = 0;
    std::size_t least = points;
    std::size_t most = 0;
    for (const auto& bucket : buckets) {
      CHECK(bucket.begin == next);
      REQUIRE(bucket.end > bucket.begin);
      next = bucket.end;
      least = std::min(least, bucket.end - bucket.begin);
      most = std::max(most, bucket.end - bucket.begin);
    }
    CHECK(next == points);
    if (points > 0) CHECK(most - least <= 1);
  }
}

TEST_CASE("no peak is lost when points share a column") {
  std::vector<double> values(10'000, 1.0);
  values[5'003] = 100;
  values[7'777] = -100;
  const auto buckets = report::buckets_of(values.size(), 600);
  const auto ranges = report::ranges_of(values, buckets);
  double lowest = 1;
  double highest = 1;
  double sum = 0;
  for (std::size_t column = 0; column < ranges.size(); ++column) {
    lowest = std::min(lowest, ranges[column].lowest);
    highest = std::max(highest, ranges[column].highest);
    sum += ranges[column].mean * static_cast<double>(buckets[column].end - buckets[column].begin);
  }
  CHECK(lowest == -100);
  CHECK(highest == 100);
  CHECK(sum == Approx(std::accumulate(values.begin(), values.end(), 0.0)));
}

TEST_CASE("values that are not finite count for nothing") {
  const double nan = telemetry::absent;
  const std::vector<double> values{nan, 2, INFINITY, 4, nan};
  const auto range = report::range_of(values);
  CHECK(range.lowest == 2);
  CHECK(range.mean == 3);
  CHECK(range.highest == 4);
  CHECK(std::isnan(report::range_of({}).mean));
  const auto smooth = report::smoothed(values, 0.5);
  CHECK(std::isnan(smooth[0]));
  CHECK(smooth[1] == 2);
  // Two thirds of the newer one: weights 1/2 and 1/4.
  CHECK(smooth[3] == Approx((0.5 * 4 + 0.25 * 2) / 0.75));
}

TEST_CASE("a smoothed constant is the constant from its first value on") {
  for (const double value : report::smoothed(std::vector<double>(50, 3.0), 0.9)) {
    CHECK(value == Approx(3.0));
  }
  const std::vector<double> values{1, 5, 2};
  CHECK(report::smoothed(values, 0) == values);
}
