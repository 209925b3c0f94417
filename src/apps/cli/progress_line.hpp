// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace trireme::apps {

/// Line on a terminal that shows the progress of work over bytes; empty when stderr is no terminal.
class ProgressLine {
 public:
  /// doing: begin of the line.
  explicit ProgressLine(std::string doing);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { end(); }

  /// Draws the line again, at most ten times a second.
  void show(std::uint64_t bytes_done, std::uint64_t bytes_total);
  /// Clears the line, so that later output starts on an empty one.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  std::string doing_;
  bool on_terminal_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_{};
  std::size_t width_ = 0;
};

}  // namespace trireme::apps
