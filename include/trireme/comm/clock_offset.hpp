// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <cstdint>
#include <string_view>

namespace trireme::comm {

/// Difference between the steady clocks of two nodes at one moment.
struct ClockOffset {
  /// std::chrono::steady_clock of this rank minus that of the group's first rank.
  std::int64_t nanoseconds = 0;
  /// Largest possible error: half of the shortest exchange; 0 where both have one clock.
  std::int64_t error_nanoseconds = 0;
};

/// Collective over the group, of host memory. Host-blocking: yes. `clock` names the clock that this
/// rank reads: the first rank of each clock exchanges a few messages with the group's first rank
/// and takes the shortest exchange, whose middle is when the other end answered (Cristian,
/// "Probabilistic clock synchronization", 1989); the others take over its result.
ClockOffset measure_clock_offset(ProcessGroup& group, std::string_view clock);

}  // namespace trireme::comm
