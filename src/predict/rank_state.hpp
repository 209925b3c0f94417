// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/step.hpp"
#include "trireme/predict/time.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>

/// State of a simulated rank. Private to the room.
namespace trireme::predict {

/// A message's arrival, and how long it was on its way.
struct Arrival {
  std::optional<Time> at;
  Time took{};
};

/// Begin of a team's next pieces.
struct PieceBegin {
  Time at{};
  std::size_t run = 0;
  std::size_t team = 0;
  /// Earliest first, then fewest pieces: one of no time lets no rank overtake its equals.
  bool operator<(const PieceBegin& other) const {
    return std::tie(at, run, team) > std::tie(other.at, other.run, other.team);
  }
};

/// Where a rank is in its lists, and when its resources are free.
struct RankState {
  std::size_t action = 0;
  std::size_t piece = 0;
  /// Pieces that have run.
  std::size_t run = 0;
  Time stream{};
  Time host{};
  /// Links to the stages after and before.
  Time link_after{};
  Time link_before{};
  /// Begin of the piece before the next one.
  Time piece_begin{};
  std::size_t collectives = 0;
  /// The collective that the next piece waits for.
  std::optional<std::size_t> gather;
  /// The collective that was begun last for a later piece.
  std::size_t ahead = 0;
  /// Collectives before this one have ended when the stream's next piece begins.
  std::size_t past = 0;
  Parts parts;
};

/// The last of the inputs of a rank's next piece.
struct Ready {
  Time at{};
  Part cause = Part::bubble;
  /// Time that a message, if it is one, is on its way.
  Time transport{};
};

/// Counts the time until `begin` among the parts that were waited for.
inline void account_wait(RankState& state, const Ready& wait, Time begin) {
  const auto idle = begin - state.stream;
  if (wait.cause == Part::data) {
    state.parts[Part::data] += idle;
    return;
  }
  const auto transport = std::min(idle, wait.transport);
  state.parts[Part::pipeline] += transport;
  state.parts[Part::bubble] += idle - transport;
}

}  // namespace trireme::predict
