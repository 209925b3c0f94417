// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace trireme::apps {

/// Progress of work over bytes: on a terminal the status line below the log, as a run has one; off
/// a terminal a line of the log every ten seconds at most.
class ProgressLine {
 public:
  /// room: of the log's lines. doing: begin of the line.
  ProgressLine(std::string room, std::string doing);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { end(); }

  /// Draws the line again, at most ten times a second.
  void show(std::uint64_t bytes_done, std::uint64_t bytes_total);
  /// Takes the line away.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  std::string room_;
  std::string doing_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point said_ = start_;
};

}  // namespace trireme::apps
