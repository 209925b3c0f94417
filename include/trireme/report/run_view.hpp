// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/config/resolved_text.hpp"
#include "trireme/postmortem/postmortem.hpp"
#include "trireme/record/run_placement.hpp"
#include "trireme/telemetry/run_record.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Runs as the files of their directories tell of them, for people: a list of runs, a comparison, a
/// page with pictures. All of it is parsed as untrusted input.
namespace trireme::report {

enum class State {
  running,   ///< a process holds it
  finished,  ///< all steps are done
  stopped,   ///< in good order, before the last step
  failed,
  unknown  ///< nobody holds it, and it has noted no end
};
const char* name(State state);

/// State of a run with this record, of which the end is enough: by the run's lock, else as `trireme
/// why` finds it. Reads logs only if the run has noted no end.
State state_of(const std::filesystem::path& run, const telemetry::RunRecord& record);

/// Name of the run's folder: "a" of "runs/a/".
std::string folder_name(const std::filesystem::path& path);
/// Configuration, as the run has recorded it; empty if it has none.
std::vector<config::RecordedValue> values_of(const std::filesystem::path& run);

/// A run directory with what its files say.
struct RunView {
  std::filesystem::path path;
  /// The folder's name; its path, if several runs are viewed whose names are equal.
  std::string name;
  State state = State::unknown;
  telemetry::RunRecord record;
  /// Configuration, as recorded; empty if the run has none.
  std::vector<config::RecordedValue> values;
  postmortem::Postmortem postmortem;
  std::vector<postmortem::NotedFailure> earlier_failures;
  /// versions.json; null if there is none.
  base::Json versions;
  /// placement.json of the newest start; nothing if there is none.
  std::optional<record::RunPlacement> placement;

  /// Text of a key; empty if the run does not have it.
  std::string value(std::string_view key) const;
  /// Whole number of a key; `otherwise` if the run does not have it as one.
  std::int64_t number(std::string_view key, std::int64_t otherwise) const;
};

/// Failures (usage): a path is no run directory, or its record cannot be read. The postmortems tell
/// of checkpoints as `checkpoints` finds them.
base::Result<std::vector<RunView>> read_runs(std::span<const std::filesystem::path> paths,
                                             const postmortem::FindCheckpoints& checkpoints = {});

/// Key figures of a run. What is not recorded is telemetry::absent.
struct Figures {
  std::int64_t step = 0;
  std::int64_t planned_steps = 0;  ///< 0 if it is not recorded
  std::int64_t starts = 0;
  double loss = telemetry::absent;           ///< mean over the last `smoothed_steps` steps
  double held_out_loss = telemetry::absent;  ///< the last one
  double best_held_out_loss = telemetry::absent;
  std::int64_t best_step = 0;
  double tokens = telemetry::absent;
  double epochs = telemetry::absent;             ///< how often the data were seen
  double tokens_per_second = telemetry::absent;  ///< median of steady steps
  double mfu = telemetry::absent;                ///< likewise
  double peak_flops = telemetry::absent;         ///< what MFU divides by
  std::string peak_source;
  double parameters = telemetry::absent;
  double tokens_per_step = telemetry::absent;
  double step_seconds = telemetry::absent;  ///< of all steps that count, together

  static constexpr std::size_t smoothed_steps = 50;
};
Figures figures_of(const RunView& run);

}  // namespace trireme::report
