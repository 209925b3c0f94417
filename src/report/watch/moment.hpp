// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/run_view.hpp"

#include "report/time_parts.hpp"

namespace trireme::report {

/// A run at its last steps: at most `recent_steps` of the newest start.
struct Moment {
  static constexpr std::size_t recent_steps = 240;
  /// The last of these, of which speed and time left are means.
  static constexpr std::size_t mean_steps = 20;

  std::int64_t step = 0;
  std::int64_t planned_steps = 0;  ///< 0 if it is not recorded
  std::vector<double> losses;      ///< [recent step], at most 40
  std::vector<double> rates;       ///< [recent step]: tokens a second
  double tokens_per_second = telemetry::absent;
  double mfu = telemetry::absent;
  /// From one step to the next, with what stood between them: saves, evaluations.
  double step_seconds = 0;
  double seconds_left = 0;
  PartTimes parts{};                ///< mean of the last steps, in ms
  std::vector<double> stage_waits;  ///< [stage]: share of a step; empty where it is not recorded
};
/// Phase of a run: one that `is_starting` is without speeds and times, because those of an earlier
/// start say nothing of this one.
enum class Phase { is_starting, has_steps };
Moment moment_of(const RunView& view, const telemetry::RunRecord& record, Phase phase);

/// "step 1000 (in 188 steps, about 3 min)"; empty if no save is due before the end, or nothing is
/// recorded of when.
std::string next_save_text(const RunView& view, const telemetry::RunRecord& record,
                           const Moment& moment);

}  // namespace trireme::report
