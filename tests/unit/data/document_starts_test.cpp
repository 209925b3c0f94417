// SPDX-License-Identifier: Apache-2.0
// Places in a sample at which documents begin.
#include "trireme/base/error.hpp"
#include "trireme/data/dataset.hpp"

#include "scratch.hpp"

#include <catch2/catch.hpp>

#include <cstring>

using namespace trireme;
using namespace trireme::data;

namespace {

using Starts = std::vector<std::int32_t>;

/// Documents of these lengths; token t of the stream is t.
void write_lengths(const std::filesystem::path& prefix, const std::vector<int>& lengths) {
  auto writer = IndexedTokensWriter::create(prefix, TokenType::int32).value();
  std::int32_t next = 0;
  for (const int length : lengths) {
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < length; ++i) tokens.push_back(next++);
    writer.append_document(tokens);
  }
  writer.finish();
}

Starts starts_in(const IndexedTokens& tokens, std::int64_t begin, std::size_t count) {
  Starts starts(count, -1);
  tokens.document_starts(begin, starts);
  return starts;
}

TokenDataset samples_of_four(const std::filesystem::path& prefix, bool shuffle) {
  DatasetOptions options;
  options.sequence_length = 4;
  options.shuffle = shuffle;
  return TokenDataset::open({prefix.string()}, options).value();
}

}  // namespace

TEST_CASE("a token's document begins where the index says, or before the tokens in question") {
  const Scratch scratch;
  write_lengths(scratch / "a", {3, 0, 1, 5, 0, 0, 2, 9});
  for (const auto check : {FileCheck::whole, FileCheck::sizes}) {
    const auto tokens = IndexedTokens::open(scratch / "a", check).value();
    CHECK(starts_in(tokens, 0, 11) == Starts{0, 0, 0, 3, 4, 4, 4, 4, 4, 9, 9});
    // In the middle of a document, at its beginning, and within one that is longer.
    CHECK(starts_in(tokens, 2, 6) == Starts{0, 1, 2, 2, 2, 2});
    CHECK(starts_in(tokens, 4, 3) == Starts{0, 0, 0});
    CHECK(starts_in(tokens, 12, 8) == Starts{0, 0, 0, 0, 0, 0, 0, 0});
    CHECK(starts_in(tokens, 20, 0).empty());
  }
}

TEST_CASE("places of tokens are those that documents have, in any stream") {
  const Scratch scratch;
  std::vector<int> lengths;
  for (int i = 0; i < 200; ++i) lengths.push_back(i * i * 7 % 11);
  write_lengths(scratch / "a", lengths);
  const auto tokens = IndexedTokens::open(scratch / "a").value();
  std::vector<std::int64_t> begins;
  for (std::int64_t i = 0; i < tokens.document_count(); ++i) {
    const auto range = tokens.document(i);
    begins.resize(static_cast<std::size_t>(range.end), range.begin);
  }
  for (std::int64_t begin = 0; begin + 16 <= tokens.token_count(); ++begin) {
    const auto starts = starts_in(tokens, begin, 16);
    for (std::int64_t i = 0; i < 16; ++i) {
      const auto expected =
          std::max<std::int64_t>(0, begins[static_cast<std::size_t>(begin + i)] - begin);
      REQUIRE(starts[static_cast<std::size_t>(i)] == expected);
    }
  }
}

TEST_CASE("samples have the places of their tokens, drawn and in a whole pass") {
  const Scratch scratch;
  write_lengths(scratch / "a", {3, 2, 4, 6, 6});
  const auto dataset = samples_of_four(scratch / "a", true);
  for (std::uint64_t number = 0; number < 5; ++number) {
    Starts starts(4);
    Starts sample(5);
    Starts expected(4);
    dataset.sample(number, sample);
    dataset.document_starts(number, starts);
    dataset.sources().front().document_starts(sample.front(), expected);
    CHECK(starts == expected);
    dataset.document_starts_of_pass(number, starts);
    dataset.sources().front().document_starts(static_cast<std::int64_t>(4 * number), expected);
    CHECK(starts == expected);
  }
}

TEST_CASE("an index that contradicts itself ends in its name, however much of it was checked") {
  const Scratch scratch;
  write_lengths(scratch / "a", {3, 4, 5});
  const auto whole = file_bytes(scratch / "a.idx");
  const auto with = [&](std::size_t from_end, std::int64_t value) {
    auto bytes = whole;
    std::memcpy(&bytes[bytes.size() - from_end], &value, sizeof value);
    write_bytes(scratch / "a.idx", bytes);
    return IndexedTokens::open(scratch / "a", FileCheck::sizes).value();
  };
  // The second document begins with a sequence that is not there, with the first or the last; its
  // sequence begins nowhere, or late.
  const std::pair<std::size_t, std::int64_t> damages[] = {{24, 1000}, {24, -1}, {24, 0},
                                                          {16, 1},    {48, -8}, {48, 1 << 20}};
  for (const auto& [from_end, value] : damages) {
    CAPTURE(from_end, value);
    const auto tokens = with(from_end, value);
    Starts starts(12);
    try {
      tokens.document_starts(0, starts);
      // The first document may also be the whole beginning.
      CHECK(std::is_sorted(starts.begin(), starts.end()));
    } catch (const base::Error& error) {
      CHECK(error.code() == base::ExitCode::checkpoint);
      CHECK_THAT(error.what(), Catch::Contains("a.idx") && Catch::Contains("document"));
    }
  }
  CHECK_THROWS_WITH(starts_in(with(48, -8), 0, 12), Catch::Contains("follows the document before"));
}
