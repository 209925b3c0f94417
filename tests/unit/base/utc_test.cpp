// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/utc.hpp"

#include <catch2/catch.hpp>

using namespace trireme;

TEST_CASE("a moment is told in UTC to the millisecond") {
  CHECK(base::utc_text({1795253854, 250'999'999}) == "2026-11-21T09:37:34.250Z");
  CHECK(base::utc_text({0, 0}) == "1970-01-01T00:00:00.000Z");
  CHECK(base::utc_text().size() == 24);
}
