// SPDX-License-Identifier: Apache-2.0
#include "trireme/web/http.hpp"

#include <catch2/catch.hpp>

using namespace trireme;

TEST_CASE("Retry-After is a number of seconds or a date") {
  const auto asked = [](const std::string& text) {
    web::HttpResponse response;
    if (!text.empty()) response.headers["retry-after"] = text;
    return web::retry_after(response);
  };
  CHECK(asked("120") == std::chrono::seconds(120));
  CHECK(asked("0") == std::chrono::seconds(0));
  // That has passed.
  CHECK(asked("Wed, 21 Oct 2015 07:28:00 GMT") == std::chrono::seconds(0));
  const auto far = asked("Wed, 21 Oct 2065 07:28:00 GMT");
  REQUIRE(far);
  CHECK(*far > std::chrono::hours(24));
  for (const auto* nonsense : {"", "soon", "-"}) {
    CAPTURE(nonsense);
    CHECK_FALSE(asked(nonsense).has_value());
  }
  CHECK(asked("-5") == std::chrono::seconds(0));
}

TEST_CASE("names are encoded for URLs") {
  CHECK(web::url_encoded("a b/ü~+", true) == "a%20b/%C3%BC~%2B");
  CHECK(web::url_encoded("a/b=") == "a%2Fb%3D");
}
