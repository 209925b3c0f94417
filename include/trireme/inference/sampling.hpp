// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace trireme::inference {

/// Rule of choosing the next token.
struct Sampling {
  /// Divisor of the logits; 0: always the most likely token.
  double temperature = 0.0;
  /// Number of most likely tokens to choose from; 0: all.
  std::int64_t top_k = 0;
  /// Probability mass of the smallest set of most likely tokens to choose from (nucleus sampling,
  /// Holtzman et al. 2020), after temperature and top_k.
  double top_p = 1.0;
  std::uint64_t seed = 0;
};

/// Token for position `position` of sequence `sequence`. A pure function of its arguments: no
/// layout, batch or order of calls changes it. Of equal logits the lower token comes first.
std::int32_t choose_token(std::span<const float> logits, const Sampling& sampling,
                          std::int64_t sequence, std::int64_t position);

}  // namespace trireme::inference
