// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/run_view.hpp"

namespace trireme::report {

/// A row of `trireme runs`, read from the ends of a run's files.
struct ListedRun {
  std::filesystem::path path;
  std::string name;  ///< relative to the folder that was searched
  State state = State::unknown;
  std::int64_t step = 0;
  std::int64_t planned_steps = 0;  ///< 0 if it is not recorded
  double loss = telemetry::absent;
  double tokens_per_second = telemetry::absent;  ///< over the last steps, at most twenty
  std::int64_t last_time_ms = 0;                 ///< of its last line
};

struct Listing {
  std::vector<ListedRun> runs;
  /// Entries that were left out, and why.
  std::vector<std::string> notes;
};

/// Run directories in and below a folder: those that run now first, then the newest. Links and
/// hidden folders are not followed, and nothing is looked for inside of a run. Fails (usage) if
/// there is no such folder.
base::Result<Listing> list_runs(const std::filesystem::path& folder);

/// "4 s", "2 min", "31 h", "3 d": an age, or a time to wait, rounded down.
std::string age_text(std::int64_t milliseconds);

/// A table of at most `columns` columns; `now_ms` is what ages count to.
std::string text_of(const std::vector<ListedRun>& runs, std::size_t columns, std::int64_t now_ms);
/// {"run", "path", "state", "step", "steps", "loss", "tokens_per_second", "time"}; what is not
/// known is null.
base::Json to_json(const ListedRun& run);

}  // namespace trireme::report
