// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/json_lists.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace trireme::base;

TEST_CASE("elements of the object's own lists are taken; others, and what is refused, stay") {
  const char* text = R"({"a":[{"x":1},[2],3],"b":{"c":[{"y":4}]},"d":[{"z":5}]})";
  std::vector<std::string> taken;
  const auto rest =
      parse_json_lists(text, "here", ExitCode::usage,
                       [&](const Json& so_far, const std::string& key, const Json& element) {
                         if (so_far.contains("b")) return false;
                         taken.push_back(key + element.dump());
                         return true;
                       });
  CHECK(taken == std::vector<std::string>{R"(a{"x":1})", "a[2]"});
  CHECK(rest.value().dump() == R"({"a":[3],"b":{"c":[{"y":4}]},"d":[{"z":5}]})");
}

TEST_CASE("a zero byte does not end JSON unseen") {
  using namespace std::string_view_literals;
  for (const auto text : {"3\0 4"sv, "{\"a\":1}\0{\"b\":2}"sv, "\0"sv, "[1]\0"sv}) {
    const auto parsed = parse_json(text, "line");
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.failure().text.find("zero byte") != std::string::npos);
  }
}
