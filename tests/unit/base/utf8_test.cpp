// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/utf8.hpp"

#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/text.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace trireme;

TEST_CASE("each maximal ill-formed part becomes one replacement character") {
  // The example of the Unicode standard (chapter 3, best practice for replacement) and its kin.
  CHECK(base::repaired_utf8("a\xF1\x80\x80\xE1\x80\xC2"
                            "b\x80"
                            "c\x80\xBF"
                            "d") == "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  CHECK(base::repaired_utf8("\xC0\xAF") == "\uFFFD\uFFFD");                      // overlong
  CHECK(base::repaired_utf8("\xED\xA0\x80") == "\uFFFD\uFFFD\uFFFD");            // surrogate
  CHECK(base::repaired_utf8("\xF4\x90\x80\x80") == "\uFFFD\uFFFD\uFFFD\uFFFD");  // beyond U+10FFFF
  CHECK(base::repaired_utf8("abcdefgh\xE2\x82") == "abcdefgh\uFFFD");
  CHECK(base::repaired_utf8("") == "");
  const std::string good = "plain, caf\u00E9, \u4E2D\u6587, \U0001F600";
  CHECK(base::repaired_utf8(good) == good);
  CHECK(base::well_formed_prefix(good) == good.size());
}

TEST_CASE("JSON is well-formed UTF-8 whatever its strings hold") {
  CHECK(base::json_text({{"w\xe9",
                          {"a\xff"
                           "b",
                           "\xED\xA0\x80"}}}) ==
        "{\"w\uFFFD\":[\"a\uFFFDb\",\"\uFFFD\uFFFD\uFFFD\"]}");
  CHECK(base::json_text({{"a", 1}}, 2) == "{\n  \"a\": 1\n}");
}

TEST_CASE("JSON repairs texts as all else does") {
  std::mt19937 random(7);
  // Bytes of every part of a sequence, and letters.
  constexpr std::string_view bytes = "a\x80\x9F\xA0\xBF\xC0\xC2\xDF\xE0\xED\xEF\xF0\xF4\xF5\xFF";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (auto left = random() % 9; left > 0; --left) text += bytes[random() % bytes.size()];
    const auto repaired = base::repaired_utf8(text);
    CHECK_FALSE(base::first_broken_utf8(repaired).has_value());
    const auto written = base::json_text(text);
    CHECK(base::parse_json(written, "text").value().get<std::string>() == repaired);
  }
}
