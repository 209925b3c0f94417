// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/clock.hpp"
#include "train/lines/step_text.hpp"

#include <chrono>
#include <deque>
#include <string>

namespace trireme::train {

/// Lines about steps for people. On a terminal one for each log step, with a status line below that
/// follows every step; in the rank's file, and on stderr where it is no terminal, at most one in
/// each interval, the first and the last step's in any case. With -v all of them for each log step,
/// and long.
class StepLines {
 public:
  struct Settings {
    std::int64_t steps = 0;
    std::int64_t log_every = 1;
    /// Between two lines off a terminal, at least.
    std::chrono::milliseconds interval{10'000};
  };
  explicit StepLines(const Settings& settings) : settings_(settings) {}
  StepLines(const StepLines&) = delete;
  StepLines& operator=(const StepLines&) = delete;
  /// Takes the status line away.
  ~StepLines();

  void took(const StepRecord& record, double tokens_per_second, double mfu);
  /// Subject of a line that stands between those of steps.
  enum class Between { evaluation, save };
  /// Such a line: `text` behind "step 12/4000".
  void between(Between what, std::int64_t step, const std::string& text) const;

 private:
  void say(const StepFigures& figures);
  void draw_progress(const StepFigures& figures);
  /// Time until the last step, as the last ones took theirs.
  double seconds_left(std::int64_t step) const;

  Settings settings_;
  /// Losses and times of the last steps, for the curve and its trend, and for the time left.
  std::deque<double> losses_;
  std::deque<double> seconds_;
  /// The last line off a terminal, and the last status line.
  Clock::time_point said_{};
  Clock::time_point drawn_{};
  bool has_said_ = false;
};

}  // namespace trireme::train
