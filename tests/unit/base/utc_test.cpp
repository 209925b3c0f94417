// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/utc.hpp"

#include <catch2/catch.hpp>

using namespace trireme;

TEST_CASE("a moment is told in UTC to the millisecond") {
  CHECK(base::utc_text({1795253854, 250'999'999}) == "2026-11-21T09:37:34.250Z");
  CHECK(base::utc_text({0, 0}) == "1970-01-01T00:00:00.000Z");
  CHECK(base::utc_text().size() == 24);
}

TEST_CASE("a moment that was told is read back, and what is no moment is refused") {
  CHECK(base::utc_milliseconds("2026-11-21T09:37:34.250Z") == 1795253854250);
  CHECK(base::utc_milliseconds("2026-11-21T09:37:34Z") == 1795253854000);
  CHECK(base::utc_milliseconds("1970-01-01T00:00:00.000Z") == 0);
  for (const auto* text : {"", "Z", "2026-11-21", "2026-11-21T09:37:34", "2026-11-21T09:37:34.25Z",
                           "2026-11-21T09:37:34.2500Z", "2026-11-21T09:37:34.2a0Z",
                           "2026-11-21 09:37:34Z", "+026-11-21T09:37:34Z"}) {
    INFO(text);
    CHECK_FALSE(base::utc_milliseconds(text).has_value());
  }
}
