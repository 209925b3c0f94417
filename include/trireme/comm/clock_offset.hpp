// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <cstdint>
#include <functional>
#include <string_view>

namespace trireme::comm {

/// Difference between the steady clocks of two nodes at one moment.
struct ClockOffset {
  /// std::chrono::steady_clock of this rank minus that of the group's first rank.
  std::int64_t nanoseconds = 0;
  /// Largest possible error: half of the shortest exchange with each clock on the way to the first
  /// rank's, added up; 0 where both have one clock.
  std::int64_t error_nanoseconds = 0;
};

/// Reads a clock, in nanoseconds.
using ReadClock = std::function<std::int64_t()>;
/// std::chrono::steady_clock.
std::int64_t steady_nanoseconds();

/// Collective over the group, of host memory. Host-blocking: yes. `clock` names the clock that this
/// rank reads with `now`. The first ranks of all clocks are a tree, in which each has at most 16
/// others below it: it exchanges a few messages with the one above and takes the shortest exchange,
/// whose middle is when the other end answered (Cristian, "Probabilistic clock synchronization",
/// 1989). Offsets add up along the way to the group's first rank, and so do their errors: of 10,000
/// clocks over four exchanges at most. Ranks of one clock have one result. Messages of a rank do
/// not grow with the group, but for the logarithm of its size.
ClockOffset measure_clock_offset(ProcessGroup& group, std::string_view clock,
                                 const ReadClock& now = steady_nanoseconds);

}  // namespace trireme::comm
