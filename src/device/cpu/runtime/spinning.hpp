// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/compute_threads.hpp"

#include <atomic>
#include <chrono>
#include <ctime>
#include <optional>

namespace trireme::device::cpu {

/// The clock of the CPU time that the calling thread has used.
clockid_t own_cpu_clock();

/// The time at which a thread of a team last lost its core to somebody else.
using Disturbance = std::atomic<std::chrono::steady_clock::time_point>;

/// State of an awaited thread that does not run.
enum class AwaitedThread {
  computes,  ///< It has lost its core.
  calls      ///< It may as well have nothing to compute.
};

/// The time that a thread may spin from now on, as ThreadWait says.
class Spinning {
 public:
  Spinning(const ThreadWait& wait, AwaitedThread awaited, Disturbance& disturbance)
      : wait_(wait), awaited_(awaited), disturbance_(disturbance) {}

  /// Passes a moment; false once it is time to sleep. `awaited()`: CPU clock of the thread that is
  /// waited for, if any.
  template <typename Awaited>
  bool pass(const Awaited& awaited) {
    // Reading the clock takes as long as a few pauses.
    constexpr int pauses_per_look = 16;
    if (pauses_++ % pauses_per_look == 0 && !look(awaited)) return false;
    __builtin_ia32_pause();
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;

  template <typename Awaited>
  bool look(const Awaited& awaited) {
    const auto now = Clock::now();
    if (pauses_ == 1) begin_ = looked_ = now;
    const auto gap = now - looked_;
    looked_ = now;
    note_gap(now, gap);
    if (now - begin_ < wait_.spin) return true;
    if (now - begin_ >= wait_.spin_beside_running || was_disturbed(now)) return false;
    if (clock_ && now - checked_ < check_interval) return true;
    return runs(awaited(), now);
  }

  /// Time between two looks at whether the awaited thread runs: a system call each.
  static constexpr std::chrono::microseconds check_interval{50};

  void note_gap(Clock::time_point now, Clock::duration gap);
  bool was_disturbed(Clock::time_point now) const;
  /// Whether the thread of this clock has run since the last check, or is now first checked.
  bool runs(std::optional<clockid_t> clock, Clock::time_point now);

  ThreadWait wait_;
  AwaitedThread awaited_;
  Disturbance& disturbance_;
  int pauses_ = 0;
  Clock::time_point begin_;
  Clock::time_point looked_;
  /// The last check: its time, and whose CPU time it found to be what.
  Clock::time_point checked_;
  std::optional<clockid_t> clock_;
  std::chrono::nanoseconds cpu_time_{};
};

}  // namespace trireme::device::cpu
