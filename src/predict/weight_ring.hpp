// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/schedule.hpp"
#include "trireme/predict/time.hpp"

#include <cstddef>
#include <vector>

/// Units of weights that take turns in a ring, as the engine gathers them at ZeRO level 3
/// (engine/weights/gathered_weights.hpp). Private to the room.
namespace trireme::predict {

/// A table or a layer of a stage.
struct RingUnit {
  int slot = 0;
  Time gather{};
};

/// Reading of a unit by a piece of a chunk.
struct UnitReading {
  std::size_t unit = 0;
  bool in_backward = false;
};

/// Gathers that begin with a piece.
struct UnitTurn {
  /// That of its own unit, where it is neither there nor on its way; zero for none.
  Time own{};
  /// That of a unit that a later piece reads; zero for none.
  Time ahead{};
  /// Its unit is on its way, gathered ahead by a piece before.
  bool waits = false;
};

/// [action][piece] of a stage's list. `chunks`: readings of each chunk's pieces in the order of
/// forward; backward has them the other way round.
std::vector<std::vector<UnitTurn>> unit_turns(const std::vector<layout::Action>& actions,
                                              const std::vector<RingUnit>& units,
                                              const std::vector<std::vector<UnitReading>>& chunks);

}  // namespace trireme::predict
