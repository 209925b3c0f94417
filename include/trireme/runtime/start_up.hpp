// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::runtime {

/// Phases of the time between the start of this process and its first step.
class StartUp {
 public:
  struct Phase {
    std::string name;
    double seconds = 0;
  };

  /// The first phase begins when the system started this process (to some 10 ms), or now where that
  /// cannot be read.
  StartUp();

  /// Ends a phase, which began with the end of the one before or with the start. All ranks must use
  /// the same names.
  void reached(std::string_view phase);
  /// Ends two phases: `phase` was the last `seconds` before now, `before` the time until then.
  void reached(std::string_view before, std::string_view phase, double seconds);

  /// Collective over `world`: of each phase the time of the slowest rank, and the slowest sum as
  /// the phase "all".
  std::vector<Phase> slowest(comm::ProcessGroup& world) const;

 private:
  using Clock = std::chrono::steady_clock;

  std::vector<Phase> phases_;
  Clock::time_point last_;
};

/// "0.412 s, most of it MPI_Init 0.250, first step 0.100, program 0.021" of what StartUp::slowest()
/// gives.
std::string text(const std::vector<StartUp::Phase>& phases);

}  // namespace trireme::runtime
