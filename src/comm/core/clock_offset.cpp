// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/clock_offset.hpp"

#include "trireme/comm/bytes.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <vector>

namespace trireme::comm {
namespace {

constexpr int exchanges = 16;
/// Clocks that ask one other, one after the other: few, so that nobody waits long.
constexpr int fan_out = 16;
/// Tag of these messages; the pipeline's have numbers from 0.
constexpr int clock_tag = 4099;

/// A value as a tensor: groups move types that tensors have.
template <typename T>
device::Tensor words_of(T& value) {
  constexpr auto words = static_cast<std::int64_t>(sizeof(T) / sizeof(std::int32_t));
  return {&value, device::DType::i32, {words}};
}

/// Ranks by the clocks that they read: the first rank of each leads its clock.
struct Clocks {
  /// First rank of each clock, ascending.
  std::vector<int> leaders;
  /// This rank's clock, as a position in `leaders`.
  int own = 0;
  /// Ranks that read this rank's clock, ascending.
  std::vector<int> members;
};

/// Collective. The first rank alone compares names, so that the others take no part in a search.
Clocks clocks_of(ProcessGroup& group, std::string_view clock) {
  const auto names = gather_bytes(group, clock);
  std::vector<std::int32_t> numbers;
  std::unordered_map<std::string_view, std::int32_t> known;
  for (const auto& name : names) {
    numbers.push_back(
        known.try_emplace(name, static_cast<std::int32_t>(known.size())).first->second);
  }
  const auto told = broadcast_bytes(group, {reinterpret_cast<const char*>(numbers.data()),
                                            numbers.size() * sizeof(std::int32_t)});
  numbers.resize(told.size() / sizeof(std::int32_t));
  std::memcpy(numbers.data(), told.data(), told.size());
  Clocks clocks;
  clocks.own = numbers[static_cast<std::size_t>(group.rank())];
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto number = numbers[static_cast<std::size_t>(rank)];
    // Numbers ascend in the order in which they first appear.
    if (number == static_cast<int>(clocks.leaders.size())) clocks.leaders.push_back(rank);
    if (number == clocks.own) clocks.members.push_back(rank);
  }
  return clocks;
}

/// Messages between leaders.
class Exchange {
 public:
  Exchange(ProcessGroup& group, const ReadClock& now) : group_(group), now_(now) {}

  /// Offset of this rank's clock from the first one: what its parent is off, and what this rank is
  /// off from its parent.
  ClockOffset ask(int parent) {
    ClockOffset nearest{0, std::numeric_limits<std::int64_t>::max()};
    for (int exchange = 0; exchange < exchanges; ++exchange) {
      const auto begin = now_();
      auto time = begin;
      group_.send(words_of(time), parent, clock_tag);
      group_.receive(words_of(time), parent, clock_tag);
      const auto half = (now_() - begin + 1) / 2;
      if (half < nearest.error_nanoseconds) nearest = {begin + half - time, half};
    }
    ClockOffset before;
    group_.receive(words_of(before), parent, clock_tag);
    return {before.nanoseconds + nearest.nanoseconds,
            before.error_nanoseconds + nearest.error_nanoseconds};
  }

  void answer(int child, ClockOffset own) {
    for (int exchange = 0; exchange < exchanges; ++exchange) {
      std::int64_t time = 0;
      group_.receive(words_of(time), child, clock_tag);
      time = now_();
      group_.send(words_of(time), child, clock_tag);
    }
    group_.send(words_of(own), child, clock_tag);
  }

  /// Gives `offset` of the first of these ranks to the others, each of which passes it on.
  void pass_on(const std::vector<int>& members, ClockOffset& offset) {
    const auto found = std::find(members.begin(), members.end(), group_.rank());
    const auto own = static_cast<std::size_t>(found - members.begin());
    for (std::size_t distance = 1; distance < members.size(); distance *= 2) {
      if (own < distance && own + distance < members.size()) {
        group_.send(words_of(offset), members[own + distance], clock_tag);
      } else if (own >= distance && own < 2 * distance) {
        group_.receive(words_of(offset), members[own - distance], clock_tag);
      }
    }
  }

 private:
  ProcessGroup& group_;
  const ReadClock& now_;
};

}  // namespace

std::int64_t steady_nanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

ClockOffset measure_clock_offset(ProcessGroup& group, std::string_view clock,
                                 const ReadClock& now) {
  const auto clocks = clocks_of(group, clock);
  Exchange exchange(group, now);
  ClockOffset offset;
  const auto& leaders = clocks.leaders;
  if (leaders[static_cast<std::size_t>(clocks.own)] == group.rank()) {
    const auto leader_of = [&](int number) { return leaders[static_cast<std::size_t>(number)]; };
    if (clocks.own > 0) offset = exchange.ask(leader_of((clocks.own - 1) / fan_out));
    const auto first = std::int64_t{fan_out} * clocks.own + 1;
    const auto end = std::min(first + fan_out, static_cast<std::int64_t>(leaders.size()));
    for (auto child = first; child < end; ++child) {
      exchange.answer(leader_of(static_cast<int>(child)), offset);
    }
  }
  exchange.pass_on(clocks.members, offset);
  return offset;
}

}  // namespace trireme::comm
