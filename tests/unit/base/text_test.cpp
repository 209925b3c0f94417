// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/text.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"
#include "trireme/base/shell_word.hpp"

#include <catch2/catch.hpp>

#include <cstdio>

using namespace trireme;

TEST_CASE("a number is a whole text, and one that its type holds") {
  CHECK(base::number_in<int>("42") == 42);
  CHECK(base::number_in<int>("-7") == -7);
  CHECK(base::number_in<int>("007") == 7);
  CHECK(base::number_in<std::int64_t>("9223372036854775807") == INT64_MAX);
  CHECK(base::number_in<double>("2.5e3") == 2500.0);
  for (const auto* text : {"", "-", " 4", "4 ", "+4", "4x", "0x10", "4.0", "9223372036854775808"}) {
    CAPTURE(text);
    CHECK_FALSE(base::number_in<std::int64_t>(text).has_value());
  }
  CHECK_FALSE(base::number_in<std::uint16_t>("65536").has_value());
  CHECK_FALSE(base::number_in<unsigned>("-1").has_value());
}

TEST_CASE("texts are trimmed and split") {
  CHECK(base::trimmed(" \ta b\r\n") == "a b");
  CHECK(base::trimmed(" \n").empty());
  CHECK(base::split("a::b:", ':') == std::vector<std::string_view>{"a", "", "b", ""});
  CHECK(base::split("", ':').empty());
  CHECK(base::lower_case("AzÄ[") == "azÄ[");
}

TEST_CASE("control and broken bytes are shown by their numbers") {
  CHECK(base::printable("a\tb\xffä") == "a\\x09b\\xffä");
  CHECK(base::first_broken_utf8("ä\xc3") == 2);
  CHECK_FALSE(base::first_broken_utf8("ä").has_value());
}

TEST_CASE("the digest is FNV-1a of 64 bits") {
  // From the test suite that comes with the algorithm's reference.
  CHECK(base::Fnv1a().value() == 0xCBF29CE484222325U);
  CHECK(base::Fnv1a().add("a").value() == 0xAF63DC4C8601EC8CU);
  CHECK(base::Fnv1a().add("foobar").value() == 0x85944171F73967E8U);
}

TEST_CASE("large counts are told in words") {
  CHECK(base::count_text(999) == "999");
  CHECK(base::count_text(12'345) == "12.3 thousand");
  CHECK(base::count_text(124.4e6) == "124.4 million");
  CHECK(base::count_text(70.554e9) == "70.55 billion");
}

TEST_CASE("a shell reads a quoted word as it was") {
  CHECK(base::shell_word("runs/a-1.2") == "runs/a-1.2");
  CHECK(base::shell_word("läufe/run eins") == "'läufe/run eins'");
  CHECK(base::shell_word("") == "''");
  CHECK(base::shell_word("-n") == "'-n'");
  for (const std::string odd : {"it's", "$(ls) `ls` \\", "a\nb\t*?", "'", "\"x\"", "~/x", "#x"}) {
    std::FILE* const shell = ::popen(("printf %s " + base::shell_word(odd)).c_str(), "r");
    REQUIRE(shell != nullptr);
    std::string said(100, '\0');
    said.resize(std::fread(said.data(), 1, said.size(), shell));
    CHECK(::pclose(shell) == 0);
    CHECK(said == odd);
  }
}
