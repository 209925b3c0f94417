// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/exposure.hpp"

#include "trireme/data/indexed_tokens.hpp"

#include "scratch.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

using namespace trireme;
using namespace trireme::data;

namespace {

/// Path of a token file with so many samples of 8 tokens.
std::string samples_of(const std::filesystem::path& prefix, int count) {
  auto writer = IndexedTokensWriter::create(prefix, TokenType::int32).value();
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count) * 8 + 1);
  std::iota(tokens.begin(), tokens.end(), 0);
  writer.append_document(tokens);
  writer.finish();
  return prefix.string();
}

TokenDataset opened(const std::vector<std::string>& sources) {
  DatasetOptions options;
  options.sequence_length = 8;
  options.seed = 1;
  return TokenDataset::open(sources, options).value();
}

}  // namespace

TEST_CASE("a run says how often it sees its data, and warns where a batch has a sample twice") {
  const Scratch scratch;
  const auto dataset = opened({samples_of(scratch / "a", 2)});
  CHECK(text(exposure_of(dataset, 320), 80, 4) ==
        "2 samples of 8 tokens, seen 160 times in 80 steps of 4");
  CHECK(text(exposure_of(dataset, 2), 1, 2) == "2 samples of 8 tokens, seen once in 1 step of 2");
  CHECK(text(exposure_of(dataset, 1), 1, 1) ==
        "2 samples of 8 tokens, seen 0.5 times in 1 step of 1");
  CHECK(text(exposure_of(dataset, 143'000), 35'750, 4) ==
        "2 samples of 8 tokens, seen 71.5 thousand times in 35750 steps of 4");
  CHECK(repeats_in_batch(dataset, 2).empty());
  CHECK_THAT(repeats_in_batch(dataset, 3),
             Catch::Contains("the data have only 2 samples of 8 tokens"));
}

TEST_CASE("sources without weights are seen alike, and have shares of the samples") {
  const Scratch scratch;
  const auto a = samples_of(scratch / "a", 30);
  const auto b = samples_of(scratch / "b", 10);
  const auto exposure = exposure_of(opened({a, b}), 60);
  REQUIRE(exposure.sources.size() == 2);
  CHECK(exposure.samples == 40);
  CHECK(exposure.tokens == 241 + 81);
  CHECK(exposure.sources[0].share == 0.75);
  CHECK(exposure.sources[0].epochs == 1.5);
  CHECK(exposure.sources[1].epochs == 1.5);
  CHECK(exposure.epochs == 1.5);
}

TEST_CASE("each source of a mixture is seen as often as its samples are drawn") {
  const Scratch scratch;
  const auto a = samples_of(scratch / "a", 30);
  const auto b = samples_of(scratch / "b", 10);
  const auto dataset = opened({a + ":0.25", b + ":0.75"});
  constexpr std::uint64_t drawn = 61;
  std::map<std::size_t, double> counted;
  for (std::uint64_t index = 0; index < drawn; ++index) ++counted[dataset.place(index).source];
  const auto exposure = exposure_of(dataset, drawn);
  CHECK(exposure.sources[0].share == 0.25);
  CHECK(exposure.sources[0].epochs == counted[0] / 30);
  CHECK(exposure.sources[1].epochs == counted[1] / 10);
  CHECK(exposure.epochs == 61.0 / 40);
  CHECK(text(exposure_of(dataset, 80), 20, 4) ==
        "40 samples of 8 tokens, seen 2 times in 20 steps of 4: '" + a +
            "' 25 % (30 samples, seen 0.6667 times), '" + b + "' 75 % (10 samples, seen 6 times)");
  // Three quarters of 16 are 12 of its 10 samples; the data as a whole have enough.
  CHECK_THAT(repeats_in_batch(dataset, 16), Catch::Contains("'" + b + "' has only 10 samples"));
  CHECK(repeats_in_batch(dataset, 12).empty());
}
