// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/dataset.hpp"

#include "trireme/base/error.hpp"

#include "scratch.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <numeric>
#include <set>

using namespace trireme;
using namespace trireme::data;

namespace {

/// Tokens first, first + 1, ... under `prefix`, in documents of seven.
std::string counting_tokens(const std::filesystem::path& prefix, std::int32_t first, int count) {
  auto writer = IndexedTokensWriter::create(prefix, TokenType::int32).value();
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  for (std::size_t begin = 0; begin < tokens.size(); begin += 7) {
    const auto size = std::min<std::size_t>(7, tokens.size() - begin);
    writer.append_document(std::span(tokens).subspan(begin, size));
  }
  writer.finish();
  return prefix.string();
}

DatasetOptions options(bool shuffle = true, std::uint64_t seed = 1) {
  DatasetOptions chosen;
  chosen.sequence_length = 8;
  chosen.seed = seed;
  chosen.shuffle = shuffle;
  return chosen;
}

std::vector<std::int32_t> sample(const TokenDataset& dataset, std::uint64_t index) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(dataset.sequence_length()) + 1, -1);
  dataset.sample(index, tokens);
  return tokens;
}

}  // namespace

TEST_CASE("samples in order are the stream, each token but the first predicted once") {
  const Scratch scratch;
  const auto dataset =
      TokenDataset::open({counting_tokens(scratch / "a", 0, 100)}, options(false)).value();
  REQUIRE(dataset.sample_count() == 12);  // 99 targets, 8 a sample
  for (std::uint64_t index = 0; index < 24; ++index) {
    std::vector<std::int32_t> expected(9);
    std::iota(expected.begin(), expected.end(), static_cast<std::int32_t>(index % 12 * 8));
    CHECK(sample(dataset, index) == expected);
    CHECK(dataset.epoch_of(index) == index / 12);
  }
}

TEST_CASE("a stream of exactly one sample is enough and one token less is refused") {
  const Scratch scratch;
  CHECK(TokenDataset::open({counting_tokens(scratch / "a", 0, 9)}, options())->sample_count() == 1);
  const auto short_of_one = TokenDataset::open({counting_tokens(scratch / "b", 0, 8)}, options());
  REQUIRE_FALSE(short_of_one.ok());
  CHECK(short_of_one.failure().code == base::ExitCode::checkpoint);
  CHECK_THAT(short_of_one.failure().text, Catch::Contains("8 tokens, too few for one sample of 8"));
}

TEST_CASE("each epoch visits each sample once, in an order of its own") {
  const Scratch scratch;
  const auto dataset = TokenDataset::open(
      {counting_tokens(scratch / "a", 0, 1000), counting_tokens(scratch / "b", 5000, 500)},
      options());
  REQUIRE(dataset.ok());
  const auto count = static_cast<std::uint64_t>(dataset->sample_count());
  CHECK(count == 124 + 62);
  std::vector<std::vector<std::int32_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int32_t> firsts;
    for (std::uint64_t i = 0; i < count; ++i) {
      firsts.push_back(sample(*dataset, epoch * count + i)[0]);
    }
    CHECK(std::set<std::int32_t>(firsts.begin(), firsts.end()).size() == count);
    orders.push_back(std::move(firsts));
  }
  CHECK(orders[0] != orders[1]);
  CHECK(orders[1] != orders[2]);
}

TEST_CASE("the order is a function of seed and index: reopened, resumed, read by any rank") {
  const Scratch scratch;
  const auto source = counting_tokens(scratch / "a", 0, 2000);
  const auto dataset = TokenDataset::open({source}, options()).value();
  std::vector<std::vector<std::int32_t>> series;
  for (std::uint64_t i = 0; i < 600; ++i) series.push_back(sample(dataset, i));
  // A second reader that starts at a cursor in the middle of epoch 1 continues the series.
  const auto resumed = TokenDataset::open({source}, options()).value();
  CHECK(resumed.fingerprint() == dataset.fingerprint());
  for (std::uint64_t i = 333; i < 600; ++i) CHECK(sample(resumed, i) == series[i]);
  const auto other = TokenDataset::open({source}, options(true, 2)).value();
  CHECK(other.fingerprint() != dataset.fingerprint());
  CHECK(sample(other, 0) != series[0]);
}

TEST_CASE("a whole pass takes each source once and in order, and says what it weighs") {
  const Scratch scratch;
  const auto a = counting_tokens(scratch / "a", 0, 81);
  const auto b = counting_tokens(scratch / "b", 1000, 801);
  const auto all_of = [](const TokenDataset& dataset) {
    std::vector<std::int32_t> firsts;
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(dataset.sequence_length()) + 1);
    for (const auto& part : dataset.parts()) {
      for (auto number = part.begin; number < part.end; ++number) {
        dataset.sample_of_pass(number, tokens);
        firsts.push_back(tokens.front());
      }
    }
    return firsts;
  };
  const auto plain = TokenDataset::open({a, b}, options(false)).value();
  std::vector<std::int32_t> expected;
  for (int begin = 0; begin + 8 < 81; begin += 8) expected.push_back(begin);
  for (int begin = 0; begin + 8 < 801; begin += 8) expected.push_back(1000 + begin);
  CHECK(plain.parts().size() == 1);
  CHECK(plain.parts()[0].share == 1.0);
  CHECK(all_of(plain) == expected);
  const auto weighted = TokenDataset::open({a + ":0.75", b + ":.25"}, options()).value();
  CHECK(all_of(weighted) == expected);
  REQUIRE(weighted.parts().size() == 2);
  CHECK(weighted.parts()[0].share == 0.75);
  CHECK(weighted.parts()[1].share == 0.25);
}

TEST_CASE("weights share out samples exactly and each source has epochs of its own") {
  const Scratch scratch;
  const auto dataset = TokenDataset::open({counting_tokens(scratch / "a", 0, 81) + ":0.75",
                                           counting_tokens(scratch / "b", 1000, 801) + ":.25"},
                                          options())
                           .value();
  CHECK(dataset.sample_count() == 110);
  std::map<std::int32_t, int> first_source;
  int second = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const auto first = sample(dataset, i)[0];
    if (first >= 1000) {
      ++second;
    } else {
      ++first_source[first];
    }
  }
  CHECK(second == 10);
  // Thirty draws of ten samples: three epochs.
  CHECK(first_source.size() == 10);
  for (const auto& [first, count] : first_source) CHECK(count == 3);
}

TEST_CASE("wrong sources are refused with the reason") {
  const Scratch scratch;
  const auto source = counting_tokens(scratch / "a", 0, 100);
  const auto refused = [&](const std::vector<std::string>& sources, const std::string& words) {
    const auto result = TokenDataset::open(sources, options());
    REQUIRE_FALSE(result.ok());
    CHECK_THAT(result.failure().text, Catch::Contains(words));
  };
  refused({}, "no data sources");
  refused({source + ":0.3", source}, "has no weight but others have");
  refused({source + ":0"}, "no decimal number above zero");
  refused({source + ":-1"}, "no decimal number above zero");
  refused({source + ":1.0000000001"}, "no decimal number above zero");
  refused({source + ":99999999"}, "no decimal number above zero");
  refused({(scratch / "absent").string()}, "there are no tokens at");
}

TEST_CASE("ids outside the vocabulary are refused at once, or when a sample holds one") {
  const Scratch scratch;
  auto chosen = options(false);
  chosen.vocab_size = 100;
  const auto source = counting_tokens(scratch / "a", 0, 101);
  const auto result = TokenDataset::open({source}, chosen);
  REQUIRE_FALSE(result.ok());
  CHECK_THAT(result.failure().text,
             Catch::Contains("token id 100, outside the model's vocabulary"));
  chosen.vocab_size = 101;
  CHECK(TokenDataset::open({source}, chosen).ok());

  // One bad id far from every block that open() looks at.
  std::vector<std::int32_t> tokens(4'000'000, 1);
  tokens[1'002'100] = -7;
  auto writer = IndexedTokensWriter::create(scratch / "b", TokenType::int32).value();
  writer.append_document(tokens);
  writer.finish();
  const auto dataset = TokenDataset::open({(scratch / "b").string()}, chosen);
  REQUIRE(dataset.ok());
  CHECK(sample(*dataset, 0)[0] == 1);
  const auto bad = static_cast<std::uint64_t>(1'002'100 / 8);
  CHECK_THROWS_WITH(sample(*dataset, bad), Catch::Contains("token 1002100 is id -7"));
  try {
    sample(*dataset, bad);
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::checkpoint);
  }
}
