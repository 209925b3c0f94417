// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/config/step_range.hpp"
#include "trireme/telemetry/rank_trace.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Traces of all ranks of a run over a few steps: where their time goes, and pictures of it.
namespace trireme::report {

struct RunTrace {
  std::filesystem::path folder;
  config::StepRange steps;
  /// Ascending by rank.
  std::vector<telemetry::RankTrace> ranks;
};

/// Folders of a run's traces, the oldest first; none that is being written.
std::vector<std::filesystem::path> trace_folders(const std::filesystem::path& run);

/// The trace of these steps, or the newest. Failures (usage): the run has none; a file is none.
base::Result<RunTrace> read_trace(const std::filesystem::path& run,
                                  const std::optional<config::StepRange>& steps);

/// Seconds of a rank from the begin of the first step to the end of the last.
struct Breakdown {
  double wall = 0;
  /// By telemetry::TimeUse; they add up to `wall`.
  std::array<double, telemetry::time_use_count> uses{};
  /// Some collective or message is under way; a receive is so from when it is posted.
  double communication = 0;
  /// Communication while the rank computes.
  double hidden = 0;

  double of(telemetry::TimeUse use) const { return uses[static_cast<std::size_t>(use)]; }
  /// Share of communication that computation hides; 0 where there is none.
  double overlap() const { return communication > 0 ? hidden / communication : 0; }
};
Breakdown breakdown_of(const telemetry::RankTrace& trace);

/// Operations of one name and group, of all ranks.
struct OperationTotal {
  std::string name;
  std::string group;
  std::int64_t count = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;  ///< under way
  double waited = 0;   ///< ranks wait for them
};
/// Those that ranks wait for longest come first.
std::vector<OperationTotal> operation_totals(const RunTrace& trace);

/// Tables for people.
std::string trace_text(const RunTrace& trace);
/// {"first_step", "last_step", "ranks": [{"rank", "host", "wall_seconds", "seconds": {use: s},
///  "communication_seconds", "overlap", "clock_error_seconds", "left_out"}], "operations": [..]}.
base::Json trace_json(const RunTrace& trace);
/// Ranks downwards, time to the right: what each rank's thread does, and below it what
/// communication is under way. Of at most 64 ranks; a self-contained document.
std::string trace_svg(const RunTrace& trace);
/// All ranks in one file for ui.perfetto.dev, with arrows from sends to their receives.
std::string perfetto_text(const RunTrace& trace);

}  // namespace trireme::report
