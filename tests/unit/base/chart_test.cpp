// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/chart.hpp"

#include <catch2/catch.hpp>

#include <limits>

using namespace trireme;

TEST_CASE("ticks are round numbers within the range") {
  CHECK(base::ticks_of(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  const auto ticks = base::ticks_of(3.51, 6.27, 5);
  CHECK(ticks == std::vector<double>{4, 5, 6});
  CHECK(base::ticks_of(1, 1, 5).empty());
  CHECK(base::ticks_of(std::numeric_limits<double>::quiet_NaN(), 1, 5).empty());
  CHECK(base::ticks_of(1e300, 1.0000001e300, 5).size() <= 6);
}

TEST_CASE("numbers of ticks are short") {
  CHECK(base::short_text(0) == "0");
  CHECK(base::short_text(0.002) == "0.002");
  CHECK(base::short_text(600) == "600");
  CHECK(base::short_text(20'000) == "20 k");
  CHECK(base::short_text(1.5e9) == "1.5 G");
  CHECK(base::short_text(std::numeric_limits<double>::quiet_NaN()) == "–");
}
