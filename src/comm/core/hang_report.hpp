// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/id.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::comm {

/// State of a rank that others wait for.
struct RankStatus {
  /// States in ascending order of how much they explain.
  enum class State : std::int32_t {
    silent,     ///< no reply, neither from the rank nor from a neighbour of it
    computing,  ///< alive, and waits for no other rank
    waiting,    ///< waits for other ranks, which explain its absence
    halted      ///< stopped by a signal, dead, or gone: it will not come
  };
  State state = State::silent;
  /// Ranks that it waits for: the first few.
  std::vector<base::Rank> awaited;
  /// "rank 3 (process 4711 on n2, stopped by a signal)"; empty when it is silent.
  std::string text;
};

/// Ranks that hold up all others, as far as the others can tell.
struct HangReport {
  /// Ranks, ascending; never empty.
  std::vector<base::Rank> ranks;
  /// Texts of these ranks: what is known of each.
  std::vector<std::string> texts;
  /// "node n3 is cut off: …" where that explains all; else empty.
  std::string cut_off;
};

}  // namespace trireme::comm
