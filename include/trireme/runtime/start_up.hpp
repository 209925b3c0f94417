// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::runtime {

/// Where the time goes between the start of this process and its first step.
class StartUp {
 public:
  struct Phase {
    std::string name;
    double seconds = 0;
  };

  /// The first phase begins when the system started this process (to some 10 ms), or now where that
  /// cannot be read.
  StartUp();

  /// What has been done since the phase before, or since the start. All ranks must name the same.
  void reached(std::string_view phase);
  /// The last `seconds` before now were a phase of their own, behind what came before them.
  void reached(std::string_view before, std::string_view phase, double seconds);

  /// Collective over `world`: of each phase the time of the slowest rank, and the slowest sum as
  /// the phase "all".
  std::vector<Phase> slowest(comm::ProcessGroup& world) const;

 private:
  using Clock = std::chrono::steady_clock;

  std::vector<Phase> phases_;
  Clock::time_point last_;
};

/// "0.412 s: program 0.021, MPI_Init 0.250, …" of what StartUp::slowest() gives.
std::string text(const std::vector<StartUp::Phase>& phases);

}  // namespace trireme::runtime
