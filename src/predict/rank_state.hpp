// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/step.hpp"
#include "trireme/predict/time.hpp"

#include <cstddef>
#include <optional>

/// State of a simulated rank. Private to the room.
namespace trireme::predict {

/// A message's arrival, and how long it was on its way.
struct Arrival {
  std::optional<Time> at;
  Time took{};
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

}  // namespace trireme::predict
