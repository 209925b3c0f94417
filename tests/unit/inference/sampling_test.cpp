// SPDX-License-Identifier: Apache-2.0
#include "trireme/inference/sampling.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace trireme::inference {
namespace {

/// Shares of each token among many draws at different positions.
std::map<std::int32_t, double> shares(const std::vector<float>& logits, const Sampling& sampling) {
  constexpr int draws = 40000;
  std::map<std::int32_t, double> counts;
  for (int position = 0; position < draws; ++position) {
    counts[choose_token(logits, sampling, 7, position)] += 1.0 / draws;
  }
  return counts;
}

// Probabilities 0.1, 0.4, 0.2, 0.3 at temperature 1.
const std::vector<float> some_logits{std::log(0.1F), std::log(0.4F), std::log(0.2F),
                                     std::log(0.3F)};

}  // namespace

TEST_CASE("without temperature the most likely token is chosen, of equals the lowest") {
  CHECK(choose_token(some_logits, {}, 0, 0) == 1);
  const std::vector<float> equal{0.5F, 2.0F, 2.0F};
  CHECK(choose_token(equal, {}, 0, 0) == 1);
  CHECK(choose_token(equal, {.temperature = 1.0, .top_k = 1}, 0, 0) == 1);
}

TEST_CASE("tokens are drawn with their probabilities") {
  const auto found = shares(some_logits, {.temperature = 1.0, .seed = 3});
  CHECK(found.at(0) == Approx(0.1).margin(0.01));
  CHECK(found.at(1) == Approx(0.4).margin(0.01));
  CHECK(found.at(2) == Approx(0.2).margin(0.01));
  CHECK(found.at(3) == Approx(0.3).margin(0.01));
}

TEST_CASE("temperature sharpens probabilities") {
  // At one half every probability is squared: 0.01, 0.16, 0.04, 0.09 of 0.30.
  const auto found = shares(some_logits, {.temperature = 0.5, .seed = 4});
  CHECK(found.at(1) == Approx(0.16 / 0.30).margin(0.01));
  CHECK(found.at(0) == Approx(0.01 / 0.30).margin(0.01));
}

TEST_CASE("top-k leaves the k most likely tokens") {
  const auto found = shares(some_logits, {.temperature = 1.0, .top_k = 2, .seed = 5});
  CHECK(found.size() == 2);
  CHECK(found.at(1) == Approx(0.4 / 0.7).margin(0.01));
  CHECK(found.at(3) == Approx(0.3 / 0.7).margin(0.01));
}

TEST_CASE("top-p leaves the fewest tokens that reach the probability") {
  // 0.4 + 0.3 do not reach 0.75, with 0.2 they do.
  const auto found = shares(some_logits, {.temperature = 1.0, .top_p = 0.75, .seed = 6});
  CHECK(found.size() == 3);
  CHECK(found.at(2) == Approx(0.2 / 0.9).margin(0.01));
  // Never fewer than one.
  CHECK(shares(some_logits, {.temperature = 1.0, .top_p = 0.0, .seed = 6}).size() == 1);
}

TEST_CASE("a choice depends on seed, sequence and position alone") {
  const Sampling sampling{.temperature = 1.0, .seed = 8};
  const auto chosen = choose_token(some_logits, sampling, 2, 3);
  CHECK(choose_token(some_logits, sampling, 2, 3) == chosen);
  const auto row = [&](std::uint64_t seed, std::int64_t sequence) {
    std::vector<std::int32_t> tokens;
    for (int position = 0; position < 64; ++position) {
      tokens.push_back(
          choose_token(some_logits, {.temperature = 1.0, .seed = seed}, sequence, position));
    }
    return tokens;
  };
  CHECK(row(8, 2) != row(9, 2));
  CHECK(row(8, 2) != row(8, 3));
}

}  // namespace trireme::inference
