// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/schedule.hpp"
#include "trireme/predict/time.hpp"

#include <cstddef>
#include <vector>

/// Weights that take turns in a ring, as the engine gathers them at ZeRO level 3
/// (engine/weights/gathered_weights.hpp). Private to the room.
namespace trireme::predict {

/// Part of the weights of a place that is gathered at once: a layer, a block of a vocabulary.
struct RingUnit {
  /// Elements of the ring, [begin, end), that it takes turns in.
  double begin = 0;
  double end = 0;
  Time gather{};
};

/// Weights that a piece reads at once: those of a table, a layer, a head.
struct RingPlace {
  std::vector<RingUnit> units;
  bool is_layer = false;
};

/// Reading of a place by a piece of a chunk.
struct PlaceReading {
  std::size_t place = 0;
  bool in_backward = false;
};

/// Gathers that begin with a piece.
struct PlaceTurn {
  /// Those of units of its own place that are neither there nor on their way; zero for none.
  Time own{};
  /// Those of units that later pieces read; zero for none.
  Time ahead{};
  /// Its place is on its way, gathered ahead by pieces before.
  bool waits = false;
};

/// [action][piece] of a stage's list. `chunks`: readings of each chunk's pieces in the order of
/// forward; backward has them the other way round.
std::vector<std::vector<PlaceTurn>> place_turns(
    const std::vector<layout::Action>& actions, const std::vector<RingPlace>& places,
    const std::vector<std::vector<PlaceReading>>& chunks);

}  // namespace trireme::predict
