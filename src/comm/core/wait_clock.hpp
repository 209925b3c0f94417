// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace trireme::comm {

/// Time that a wait has lasted while its own process ran. A wait polls every few milliseconds: a
/// longer gap between two polls means that the process did not run (scontrol suspend, a debugger, a
/// closed lid), and its peers may not have run either.
class WaitClock {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds longest_gap{1000};

  explicit WaitClock(Clock::time_point now = Clock::now()) : begin_(now), seen_(now) {}

  /// Duration since the beginning, without the gaps so far.
  std::chrono::duration<double> waited(Clock::time_point now = Clock::now()) {
    if (now - seen_ > longest_gap) begin_ += now - seen_;
    seen_ = now;
    return now - begin_;
  }

 private:
  Clock::time_point begin_;
  Clock::time_point seen_;
};

}  // namespace trireme::comm
