// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/id.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::comm {

/// What is known of a rank that others wait for.
struct RankStatus {
  /// Ascending by how much they explain.
  enum class State : std::int32_t {
    silent,     ///< neither the rank nor a neighbour of it answers
    computing,  ///< alive, and waits for nobody
    waiting,    ///< for other ranks, which explain its absence
    halted      ///< stopped by a signal, dead, or gone: it will not come
  };
  State state = State::silent;
  /// Ranks that it waits for: the first few.
  std::vector<base::Rank> awaited;
  /// "rank 3 (process 4711 on n2, stopped by a signal)"; empty when it is silent.
  std::string text;
};

/// Which ranks hold up all others, as far as the others can tell.
struct HangReport {
  /// Ranks, ascending; never empty.
  std::vector<base::Rank> ranks;
  /// Texts of these ranks: what is known of each.
  std::vector<std::string> texts;
  /// "node n3 is cut off: …" where that explains all; else empty.
  std::string cut_off;
};

}  // namespace trireme::comm
