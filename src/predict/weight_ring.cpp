// SPDX-License-Identifier: Apache-2.0
#include "weight_ring.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace trireme::predict {
namespace {

/// A piece that reads a unit, and which of the list's readings it is a part of: several in a row
/// are one.
struct Reading {
  std::size_t unit = 0;
  std::size_t number = 0;
  UnitTurn* turn = nullptr;
};

/// Slots while a list of actions runs.
class Ring {
 public:
  Ring(const std::vector<RingUnit>& units, std::vector<std::size_t> order)
      : units_(units), order_(std::move(order)) {
    for (const auto& unit : units) {
      slots_.resize(std::max(slots_.size(), static_cast<std::size_t>(unit.slot) + 1));
    }
  }

  void read(const Reading& reading) {
    auto& slot = slot_of(reading.unit);
    auto& turn = *reading.turn;
    if (slot.unit != reading.unit) {
      slot = {reading.unit, true};
      turn.own = units_[reading.unit].gather;
    } else {
      turn.waits = slot.is_under_way && units_[reading.unit].gather > Time::zero();
    }
    slot.is_under_way = false;
    if (const auto next = next_gathered(reading)) {
      slot_of(*next) = {*next, true};
      turn.ahead = units_[*next].gather;
    }
  }

 private:
  struct Slot {
    std::optional<std::size_t> unit;
    bool is_under_way = false;
  };
  Slot& slot_of(std::size_t unit) { return slots_[static_cast<std::size_t>(units_[unit].slot)]; }

  /// Unit to gather beside this reading: the next one that is not there, if the slot is neither
  /// being read nor read before.
  std::optional<std::size_t> next_gathered(const Reading& reading) {
    std::vector<bool> taken(slots_.size(), false);
    taken[static_cast<std::size_t>(units_[reading.unit].slot)] = true;
    const auto end = std::min(order_.size(), reading.number + 1 + slots_.size());
    for (auto number = reading.number + 1; number < end; ++number) {
      const auto unit = order_[number];
      const auto& slot = slot_of(unit);
      const auto place = static_cast<std::size_t>(units_[unit].slot);
      if (slot.unit != unit) {
        return taken[place] ? std::nullopt : std::optional(unit);
      }
      // One at a time.
      if (slot.is_under_way) return std::nullopt;
      taken[place] = true;
    }
    return std::nullopt;
  }

  const std::vector<RingUnit>& units_;
  std::vector<std::size_t> order_;
  std::vector<Slot> slots_;
};

}  // namespace

std::vector<std::vector<UnitTurn>> unit_turns(const std::vector<layout::Action>& actions,
                                              const std::vector<RingUnit>& units,
                                              const std::vector<std::vector<UnitReading>>& chunks) {
  std::vector<std::vector<UnitTurn>> turns(actions.size());
  std::vector<Reading> readings;
  std::vector<std::size_t> order;
  for (std::size_t index = 0; index < actions.size(); ++index) {
    const auto& action = actions[index];
    const auto& pieces = chunks[static_cast<std::size_t>(action.virtual_stage)];
    turns[index].resize(pieces.size());
    // Gradients of weights come from activations alone.
    if (action.kind == layout::ActionKind::backward_weight) continue;
    const bool is_forward = action.kind == layout::ActionKind::forward;
    for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
      const auto& reading = pieces[is_forward ? piece : pieces.size() - 1 - piece];
      if (!is_forward && !reading.in_backward) continue;
      if (order.empty() || order.back() != reading.unit) order.push_back(reading.unit);
      readings.push_back({reading.unit, order.size() - 1, &turns[index][piece]});
    }
  }
  Ring ring(units, std::move(order));
  for (const auto& reading : readings) ring.read(reading);
  return turns;
}

}  // namespace trireme::predict
