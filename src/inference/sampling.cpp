// SPDX-License-Identifier: Apache-2.0
#include "trireme/inference/sampling.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/philox.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace trireme::inference {
namespace {

std::vector<std::int32_t> all_tokens(std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

/// Token ids, the most likely first, `count` of them.
std::vector<std::int32_t> most_likely(std::span<const float> logits, std::size_t count) {
  auto tokens = all_tokens(logits.size());
  const auto before = [&](std::int32_t a, std::int32_t b) {
    const auto left = logits[static_cast<std::size_t>(a)];
    const auto right = logits[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  };
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count),
                    tokens.end(), before);
  tokens.resize(count);
  return tokens;
}

/// Number of the first weights that make up the share `p` of all; one at least.
std::size_t nucleus(const std::vector<double>& weights, double p) {
  if (p >= 1.0) return weights.size();
  const double wanted = p * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (std::size_t count = 0; count < weights.size(); ++count) {
    sum += weights[count];
    if (sum >= wanted) return count + 1;
  }
  return weights.size();
}

}  // namespace

std::int32_t choose_token(std::span<const float> logits, const Sampling& sampling,
                          std::int64_t sequence, std::int64_t position) {
  TRIREME_EXPECT(!logits.empty(), "there is no token to choose");
  if (sampling.temperature <= 0.0) {
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) -
                                     logits.begin());
  }
  const auto kept = sampling.top_k > 0
                        ? std::min(static_cast<std::size_t>(sampling.top_k), logits.size())
                        : logits.size();
  const bool any = kept == logits.size() && sampling.top_p >= 1.0;
  const auto tokens = any ? all_tokens(logits.size()) : most_likely(logits, kept);
  std::vector<double> weights;
  const double highest = *std::max_element(logits.begin(), logits.end());
  for (const auto token : tokens) {
    const double logit = logits[static_cast<std::size_t>(token)];
    weights.push_back(std::exp((logit - highest) / sampling.temperature));
  }
  weights.resize(nucleus(weights, sampling.top_p));
  const auto bits = base::philox(sampling.seed,
                                 base::stream_of("generate") + static_cast<std::uint64_t>(sequence),
                                 static_cast<std::uint64_t>(position));
  double left =
      base::uniform_from_bits(bits[0]) * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t index = 0; index < weights.size(); ++index) {
    left -= weights[index];
    if (left < 0) return tokens[index];
  }
  return tokens[weights.size() - 1];
}

}  // namespace trireme::inference
