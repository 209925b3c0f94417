// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace trireme::inference {

/// How a next token is chosen.
struct Sampling {
  /// Divides the logits; 0: always the most likely token.
  double temperature = 0.0;
  /// Only the k most likely tokens; 0: all.
  std::int64_t top_k = 0;
  /// Only the fewest most likely tokens whose probabilities add up to p (nucleus sampling, Holtzman
  /// et al. 2020), after temperature and top_k.
  double top_p = 1.0;
  std::uint64_t seed = 0;
};

/// The token for position `position` of sequence `sequence`. A pure function of its arguments: no
/// layout, batch or order of calls changes it. Of equal logits the lower token goes first.
std::int32_t choose_token(std::span<const float> logits, const Sampling& sampling,
                          std::int64_t sequence, std::int64_t position);

}  // namespace trireme::inference
