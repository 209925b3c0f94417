// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/inference/probe.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace trireme;

namespace {

constexpr std::int64_t vocabulary = 10;

base::Result<inference::TokenLists> lists_of(const std::string& json) {
  return inference::token_lists(base::value_or_throw(base::parse_json(json, "tokens.json")),
                                vocabulary, "tokens.json");
}

/// The text of the refusal; it must name the file and be a usage error.
std::string refusal(const std::string& json) {
  const auto lists = lists_of(json);
  REQUIRE_FALSE(lists.ok());
  CHECK(lists.failure().code == base::ExitCode::usage);
  CHECK_THAT(lists.failure().text, Catch::StartsWith("tokens.json: "));
  return lists.failure().text;
}

}  // namespace

TEST_CASE("equally long lists of ids are read row by row") {
  const auto lists = base::value_or_throw(lists_of("[[0, 1, 2], [9, 8, 7]]"));
  CHECK(lists.batch == 2);
  CHECK(lists.sequence_length == 3);
  CHECK(lists.ids == std::vector<std::int32_t>{0, 1, 2, 9, 8, 7});
}

TEST_CASE("one list of two ids is enough to predict something") {
  const auto lists = base::value_or_throw(lists_of("[[3, 4]]"));
  CHECK(lists.batch == 1);
  CHECK(lists.sequence_length == 2);
}

TEST_CASE("what is no list of lists of ids is refused with an example") {
  const auto* json = GENERATE("{}", "[]", "7", "\"text\"", "null", "[1, 2, 3]", "[{\"ids\": [1]}]");
  CAPTURE(json);
  CHECK_THAT(refusal(json), Catch::Contains("[[1, 2, 3], [4, 5, 6]]"));
}

TEST_CASE("a list of another length is named") {
  CHECK_THAT(refusal("[[1, 2, 3], [1, 2, 3], [1, 2]]"),
             Catch::Contains("list 2") && Catch::Contains("3 ids"));
  CHECK_THAT(refusal("[[1, 2], [1, 2, 3]]"), Catch::Contains("list 1"));
  CHECK_THAT(refusal("[[1, 2], 5]"), Catch::Contains("list 1"));
}

TEST_CASE("sequences of one token are taken, without any refused") {
  const auto lists = base::value_or_throw(lists_of("[[1], [2]]"));
  CHECK(lists.batch == 2);
  CHECK(lists.sequence_length == 1);
  CHECK_THAT(refusal("[[], []]"), Catch::Contains("empty"));
}

TEST_CASE("an id outside the vocabulary is named with its place and the range") {
  CHECK_THAT(refusal("[[1, 2], [3, 10]]"),
             Catch::Contains("id 1 of list 1 is 10") && Catch::Contains("0 to 9"));
  CHECK_THAT(refusal("[[1, -1]]"), Catch::Contains("id 1 of list 0 is -1"));
  // Beyond 32 bits, where a cast would come out in range; and beyond 64, which JSON reads as float.
  CHECK_THAT(refusal("[[4294967297, 1]]"), Catch::Contains("4294967297"));
  CHECK_THAT(refusal("[[18446744073709551617, 1]]"), Catch::Contains("id 0 of list 0"));
}

TEST_CASE("ids that are not whole numbers are refused") {
  const auto* id = GENERATE("1.0", "1.5", "\"1\"", "true", "null", "[1]");
  CAPTURE(id);
  CHECK_THAT(refusal(std::string("[[1, ") + id + "]]"), Catch::Contains("id 1 of list 0"));
}
