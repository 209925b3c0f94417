// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"
#include "trireme/base/json.hpp"

#include <cstdint>
#include <filesystem>

namespace trireme::telemetry {

/// metrics.jsonl of a run: one JSON object a line, only ever appended to, across restarts.
class MetricsFile {
 public:
  /// Opens for appending; a last line that a crash left unfinished is ended first.
  static base::Result<MetricsFile> open(const std::filesystem::path& path);

  /// One line, in one write. Throws Error (ExitCode::checkpoint) when the disk refuses it; what it
  /// took of the line then stands on a line of its own, which readers pass over.
  void append(const base::Json& line);

 private:
  MetricsFile(base::File file, std::filesystem::path path)
      : file_(std::move(file)), path_(std::move(path)) {}

  base::File file_;
  std::filesystem::path path_;
  /// The disk refused the end of a line.
  bool torn_ = false;
};

/// How often the run of this metrics file has been started: the number of its start events.
std::int64_t start_count(const std::filesystem::path& path);

/// The last lines of a metrics file since the run began, or began anew (a start with step 1); 0
/// where it has none.
struct RecordedSteps {
  std::int64_t done = 0;
  /// Saved where all ranks find it: not on the nodes.
  std::int64_t saved = 0;
};
RecordedSteps recorded_steps(const std::filesystem::path& path);

}  // namespace trireme::telemetry
