// SPDX-License-Identifier: Apache-2.0
#include "weight_ring.hpp"

#include <algorithm>
#include <utility>

namespace trireme::predict {
namespace {

/// A piece that reads a place, and which of the list's readings it is a part of: several in a row
/// are one.
struct Reading {
  std::size_t place = 0;
  std::size_t number = 0;
  PlaceTurn* turn = nullptr;
};

bool overlap(const RingUnit& a, const RingUnit& b) {
  return a.begin < b.end && b.begin < a.end;
}

/// The ring while a list of actions runs.
class Ring {
 public:
  Ring(const std::vector<RingPlace>& places, std::vector<std::size_t> order)
      : places_(places), order_(std::move(order)), states_(places.size()) {
    for (std::size_t place = 0; place < places.size(); ++place) {
      states_[place].resize(places[place].units.size(), State::elsewhere);
    }
  }

  void read(const Reading& reading) {
    auto& turn = *reading.turn;
    const auto& units = places_[reading.place].units;
    auto& states = states_[reading.place];
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
      turn.waits =
          turn.waits || (states[unit] == State::under_way && units[unit].gather > Time::zero());
      if (states[unit] == State::elsewhere) turn.own += gather(reading.place, unit);
    }
    // Its own gathers end behind all that were under way.
    if (turn.own > Time::zero()) turn.waits = false;
    std::fill(states.begin(), states.end(), State::there);
    turn.ahead = gather_ahead(reading);
  }

 private:
  enum class State : std::uint8_t { elsewhere, under_way, there };

  /// Takes the unit's memory from all others.
  Time gather(std::size_t place, std::size_t unit) {
    const auto& own = places_[place].units[unit];
    const auto loses = [&](const std::pair<std::size_t, std::size_t>& other) {
      if (!overlap(own, places_[other.first].units[other.second])) return false;
      states_[other.first][other.second] = State::elsewhere;
      return true;
    };
    residents_.erase(std::remove_if(residents_.begin(), residents_.end(), loses), residents_.end());
    residents_.emplace_back(place, unit);
    states_[place][unit] = State::under_way;
    return own.gather;
  }

  /// Gathers of units that the next places read, where no memory is read or was read before.
  Time gather_ahead(const Reading& reading) {
    // Layers have two places: what is read behind the next but one has none.
    constexpr std::size_t most_ahead = 3;
    Time ahead{};
    std::vector<std::size_t> taken{reading.place};
    const auto end = std::min(order_.size(), reading.number + 1 + most_ahead);
    for (auto number = reading.number + 1; number < end; ++number) {
      const auto place = order_[number];
      bool all_there = true;
      for (std::size_t unit = 0; unit < states_[place].size(); ++unit) {
        const auto state = states_[place][unit];
        if (state == State::elsewhere && is_free(place, unit, taken)) ahead += gather(place, unit);
        all_there = all_there && state == State::there;
      }
      if (!all_there) break;
      taken.push_back(place);
    }
    return ahead;
  }

  bool is_free(std::size_t place, std::size_t unit, const std::vector<std::size_t>& taken) const {
    const auto& own = places_[place].units[unit];
    return std::none_of(taken.begin(), taken.end(), [&](std::size_t other) {
      const auto& units = places_[other].units;
      return std::any_of(units.begin(), units.end(),
                         [&](const RingUnit& each) { return &each != &own && overlap(own, each); });
    });
  }

  const std::vector<RingPlace>& places_;
  std::vector<std::size_t> order_;
  std::vector<std::vector<State>> states_;  // [place][unit]
  /// Units that are there or under way: place and number.
  std::vector<std::pair<std::size_t, std::size_t>> residents_;
};

}  // namespace

std::vector<std::vector<PlaceTurn>> place_turns(
    const std::vector<layout::Action>& actions, const std::vector<RingPlace>& places,
    const std::vector<std::vector<PlaceReading>>& chunks) {
  std::vector<std::vector<PlaceTurn>> turns(actions.size());
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
      if (order.empty() || order.back() != reading.place) order.push_back(reading.place);
      readings.push_back({reading.place, order.size() - 1, &turns[index][piece]});
    }
  }
  Ring ring(places, std::move(order));
  for (const auto& reading : readings) ring.read(reading);
  return turns;
}

}  // namespace trireme::predict
