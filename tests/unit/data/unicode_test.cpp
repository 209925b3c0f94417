// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/text/unicode.hpp"

#include "trireme/base/utf8.hpp"

#include "data/tokenizer/text/normalizer.hpp"
#include "data/tokenizer/text/regex.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::data;

namespace {

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(to_nfc(text, storage));
}

std::vector<std::string> matches(const std::string& pattern, std::string_view text) {
  Matcher matcher(Regex::compile_oniguruma(pattern).value());
  std::vector<std::string> found;
  std::size_t from = 0;
  while (const auto match = matcher.find(text, from)) {
    found.emplace_back(text.substr(match->begin, match->end - match->begin));
    from = match->end;
  }
  return found;
}

}  // namespace

TEST_CASE("code points are read forwards and backwards and written back") {
  const std::string text = "a\u00E9\u4E2D\U0001F600";
  std::string again;
  for (std::size_t at = 0; at < text.size();) {
    const auto [value, bytes] = code_point_at(text, at);
    base::append_utf8(again, value);
    CHECK(code_point_before(text, at + bytes).value == value);
    at += bytes;
  }
  CHECK(again == text);
}

TEST_CASE("every byte has a character of its own in byte-level text") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const auto text = byte_level_text(all);
  CHECK(byte_level_bytes(text) == all);
  CHECK(byte_level_text(" a\n") == "\u0120a\u010A");
  CHECK_FALSE(is_byte_level("\u4E2D"));
  CHECK(byte_level_bytes("\u4E2D") == "\u4E2D");
}

TEST_CASE("composition follows Unicode 9 and leaves later marks where they are") {
  CHECK(nfc("cafe\u0301") == "caf\u00E9");
  CHECK(nfc("plain caf\u00E9") == "plain caf\u00E9");
  CHECK(nfc("x\u0301\u0316") == "x\u0316\u0301");
  CHECK(nfc("\u212B") == "\u00C5");
  CHECK(nfc("\u1112\u1161\u11AB") == "\uD55C");
  // U+1DF6 came with Unicode 10: here it reorders with nothing and is passed by nothing.
  CHECK(nfc("a\u0301\u1DF6\u0316") == "\u00E1\u1DF6\u0316");
  CHECK(nfc("\U00011935\U00011930") == "\U00011935\U00011930");
  // A vowel, not a trailing consonant.
  CHECK(nfc("\uAC00\u11A7\u11A8") == "\uAC00\u11A7\u11A8");
}

TEST_CASE("patterns mean in PCRE2 what they mean in Oniguruma") {
  CHECK(matches("\\p{L}+", "ab1\u1C89\u4E2D") == std::vector<std::string>{"ab", "\u1C89\u4E2D"});
  CHECK(matches("[^\\s\\p{L}\\p{N}]", "a 1.\u180E\u0085") ==
        std::vector<std::string>{".", "\u180E"});
  CHECK(matches("\\s+(?!\\S)|\\s+", "a   b") == std::vector<std::string>{"  ", " "});
  CHECK(matches("(?i:'s)", "'s'S'\u017F").size() == 3);
  for (const std::string pattern :
       {"\\w", "\\d", "\\b", "^a", "a$", "a.b", "(?<=a)b", "(?<n>a)", "[a[b]]", "[a&&b]", "\\p{Lu}",
        "a{2}+", "[]a]", "\\h", "[[:alpha:]]", "[ab", "\\", "\\p{L"}) {
    CAPTURE(pattern);
    const auto result = translate_oniguruma(pattern);
    REQUIRE_FALSE(result.ok());
    CHECK_THAT(result.failure().text, Catch::Contains("PCRE2 may read differently"));
  }
}

TEST_CASE("an expression that is none says where it goes wrong") {
  const auto result = Regex::compile_bytes("(a");
  REQUIRE_FALSE(result.ok());
  CHECK_THAT(result.failure().text, Catch::Contains("at byte 2"));
}
