// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/telemetry/cores_use.hpp"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::telemetry {

/// Number that a line does not have: older versions wrote fewer, and JSON has none that are not
/// finite.
inline constexpr double absent = std::numeric_limits<double>::quiet_NaN();
double number_of(const base::Json& line, const char* key);

/// Line of kind `train` (docs/run-directory.md). Its numbers have their rows in step_fields().
struct StepLine {
  std::int64_t step = 0;
  std::int64_t restart = 0;
  std::int64_t time_ms = 0;  ///< since 1970; 0 where the line has none
  /// Since the first line of the record that has a time, by a clock that nobody sets back: where
  /// the times of two lines descend, `step_ms` counts instead.
  std::int64_t elapsed_ms = 0;
  double loss = absent;
  double grad_norm = absent;
  double learning_rate = absent;
  double tokens = absent;
  double epochs = absent;
  double step_ms = absent;
  double tokens_per_second = absent;
  double mfu = absent;
  double exposed_comm_ms = absent;
  double tensor_comm_ms = absent;
  double bubble_ms = absent;
  double data_ms = absent;
  double parameters_ms = absent;
  double reduction_ms = absent;
  double optimizer_ms = absent;
  double predicted_ms = absent;
  /// [stage]; empty where a line has none.
  std::vector<float> stage_bubble_ms = {};
};

struct EvaluationLine {
  std::int64_t step = 0;
  double loss = absent;
  double tokens = absent;
  double seconds = absent;
  std::int64_t restart = 0;
  std::int64_t time_ms = 0;
  /// Time of the samples behind it; absent without any.
  double sample_seconds = absent;
};

/// Text that the model has made of a prompt.
struct Sample {
  std::string prompt;
  std::string text;
  bool is_cut = false;  ///< as long as it may be, and not ended by the model
};

/// Line of kind `sample`.
struct SampleLine {
  std::int64_t step = 0;
  double temperature = absent;
  std::vector<Sample> samples;
};

/// A line of kind `load`: a step was loaded; step 0: weights.
struct LoadLine {
  std::int64_t step = 0;
  std::int64_t restart = 0;
  std::int64_t time_ms = 0;
  double seconds = absent;
};

struct SaveLine {
  std::int64_t step = 0;
  std::int64_t restart = 0;
  std::int64_t time_ms = 0;
  double bytes = absent;
  double stall_ms = absent;
  double write_ms = absent;
  bool on_nodes = false;
  /// True of a state that the run has left since: it began anew, or went back to an earlier step.
  bool is_left = false;
};

/// Line of kind `processors`: of all ranks those that something kept from their cores most.
struct ProcessorsLine {
  std::int64_t step = 0;
  std::int64_t restart = 0;
  CoresUse use;
};

struct EventLine {
  std::int64_t step = 0;
  std::int64_t restart = 0;
  std::int64_t time_ms = 0;
  std::string name;
  base::Json line;  ///< all of it

  /// Measurements that every start records: nothing has happened.
  bool is_measurement() const;
};

/// How a start has ended, as its last event says.
enum class End {
  none,
  done,    ///< all steps are made
  stopped  ///< in good order, before the last step
};

/// A run as its metrics.jsonl tells it, of any version, taken line by line.
struct RunRecord {
  std::string run;
  /// Final lineage: the steps that the newest state comes from, ascending. A start takes back the
  /// lines of those that it makes again, and so does a return to an earlier step.
  std::vector<StepLine> steps;
  /// Held-out losses of these steps.
  std::vector<EvaluationLine> evaluations;
  /// Samples of these steps, ascending; of more than `most_samples` every second one was left out,
  /// the newest never.
  std::vector<SampleLine> samples;
  /// Saves, of earlier starts too, in the order of lines.
  std::vector<SaveLine> saves;
  /// At most `most_events`; of more the first ones.
  std::vector<LoadLine> loads;
  /// At most `most_processors`, the last ones.
  std::vector<ProcessorsLine> processors;
  /// At most `most_events`; of more the first ones, and the newest start.
  std::vector<EventLine> events;
  std::string last_event;
  /// Step at which the run stands: the last one that was made, skipped or saved; where a start has
  /// made none yet, the one that it goes on after.
  std::int64_t step = 0;
  /// Number of the newest start, as its lines have it.
  std::int64_t restart = 0;
  /// Steps that the newest start has made or skipped.
  std::int64_t steps_of_start = 0;
  /// End that the newest start has noted.
  End end = End::none;
  std::int64_t start_count = 0;
  std::int64_t start_ms = 0;  ///< of the newest one; 0 where it has no time
  std::int64_t last_time_ms = 0;
  /// Steps that were made again.
  std::int64_t repeated_steps = 0;
  /// Lines that are none of this format: torn ones, and what is no JSON.
  std::int64_t passed_over = 0;
  std::int64_t dropped_events = 0;

  static constexpr std::size_t most_events = 10'000;
  static constexpr std::size_t most_processors = 4'096;
  static constexpr std::size_t most_samples = 16;
  static constexpr std::size_t most_steps = std::size_t{4} << 20;

  /// Takes the next line, without its end.
  void take(std::string_view line);
  /// The newest save of the state in which the run is; null if there is none.
  const SaveLine* last_save() const;
  /// Forgets steps up to this one, but the last `kept_steps` of the record: for readers that are
  /// done with them. `repeated_steps` then counts only what was not forgotten.
  void forget_steps(std::int64_t last);
  static constexpr std::size_t kept_steps = 64;

 private:
  void take_step(const base::Json& line, std::int64_t passed_ms);
  void take_save(const base::Json& line);
  void take_event(const base::Json& line);
  void take_samples(const base::Json& line);
  void take_processors(const base::Json& line);
  /// Lines of another start follow.
  void begin_start(std::int64_t number);
  /// Milliseconds since the last line that has a time, or less than none.
  std::int64_t take_time(const base::Json& line);
  /// Takes back what was recorded of this step and later ones.
  void take_back(std::int64_t first);

  std::int64_t elapsed_ms_ = 0;
};

/// Reads metrics.jsonl, also while a run appends to it: each line once, and no line before its end
/// stands. Memory grows with the steps of the run, up to a limit.
class RecordReader {
 public:
  enum class From {
    begin,
    /// The last lines: enough for where the run is, not for how it got there. As many as a step's
    /// line is among them, in the last 4 MiB.
    end
  };
  explicit RecordReader(std::filesystem::path path, From from = From::begin)
      : path_(std::move(path)), from_(from) {}

  /// Reads what was appended since the last call; another file in its place is read from its
  /// begin. A missing file is an empty record. Fails (ExitCode::usage) if the system refuses it or
  /// it has more than RunRecord::most_steps steps.
  base::Status advance();
  /// Steps up to this one are forgotten, those that are still to be read too
  /// (RunRecord::forget_steps): memory then grows with those behind it alone.
  void forget_steps(std::int64_t last);
  const RunRecord& record() const { return record_; }
  RunRecord take_record() && { return std::move(record_); }

 private:
  void take(std::string_view block);
  void begin_at(std::uint64_t offset);
  base::Status read_to(const base::File& file, std::uint64_t size);

  std::filesystem::path path_;
  From from_;
  RunRecord record_;
  std::uint64_t inode_ = 0;
  std::uint64_t offset_ = 0;
  std::int64_t forgotten_ = 0;
  /// Begin of a line whose end was not there yet.
  std::string begun_;
  /// The line is longer than any of ours, or its begin was not read.
  bool skips_line_ = false;
};

/// RUN/metrics.jsonl.
std::filesystem::path record_of_run(const std::filesystem::path& run);

/// The whole record of a run.
base::Result<RunRecord> read_record(const std::filesystem::path& run);

}  // namespace trireme::telemetry
