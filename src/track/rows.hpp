// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/config/resolved_text.hpp"
#include "trireme/report/run_view.hpp"
#include "trireme/telemetry/run_record.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace trireme::track {

/// A number of a run that trackers show.
struct Metric {
  std::string name;             ///< "train/loss", for TensorBoard, W&B and MLflow
  const char* exposition = "";  ///< "trireme_loss", for Prometheus, in base units
  double to_base_unit = 1;      ///< factor from `name` to `exposition`
  const char* unit = "";        ///< of `exposition` for OpenTelemetry (UCUM): "s", "By", "1"
  const char* help = "";
  bool is_counter = false;
  /// Null: not a number of a step's line.
  double telemetry::StepLine::*number = nullptr;
};
/// All of them; a Point names one by its index.
std::span<const Metric> metrics();

struct Point {
  std::size_t metric = 0;
  double value = 0;  ///< finite
};

/// Something of a run that has a begin and an end.
enum class ActivityKind { step, data, update, evaluation, save, load };
/// As the record's lines give it: ends are their times, in whole milliseconds.
struct Activity {
  ActivityKind kind = ActivityKind::step;
  std::int64_t step = 0;
  std::int64_t restart = 0;
  std::int64_t begin_ns = 0;  ///< since 1970
  std::int64_t end_ns = 0;

  bool operator==(const Activity&) const = default;
};

/// The events of a step: its line, and the evaluation and the saves after it.
struct Row {
  std::int64_t step = 0;
  std::int64_t time_ms = 0;  ///< since 1970
  std::vector<Point> points;
  /// Loads that were not sent yet stand in the first row, whatever its step.
  std::vector<Activity> activities = {};
};

/// The steps up to which lines, evaluations and saves were sent. What belongs to a step that is
/// made again is not sent again.
struct Cursor {
  std::int64_t step = 0;
  std::int64_t evaluation_step = 0;
  std::int64_t save_step = 0;
  std::int64_t load_count = 0;

  bool operator==(const Cursor&) const = default;
};

/// Rows behind the cursor in the order of steps; without the last step of the record, unless
/// `last_too`. What belongs to a step whose row was sent before (a save that was written meanwhile)
/// has a row of its own.
std::vector<Row> rows_behind(const telemetry::RunRecord& record, const Cursor& cursor,
                             bool last_too);
/// The cursor behind such a row.
Cursor behind(Cursor cursor, const telemetry::RunRecord& record, const Row& row);

/// Rows as JSON, and back; what is no row, and numbers that are not known, are left out.
base::Json to_json(std::span<const Row> rows);
std::vector<Row> rows_from(const base::Json& json);

/// Facts that trackers have of a run beside its numbers.
struct RunFacts {
  std::filesystem::path path;
  std::string name;
  /// Eight letters and digits that follow from the run's place and first start: the same at every
  /// call.
  std::string id;
  std::int64_t start_ms = 0;  ///< of the first start
  std::int64_t end_ms = 0;    ///< of the last line
  report::State state = report::State::unknown;
  /// Slurm's job number of each start in one, by `restart`.
  std::map<std::int64_t, std::string> jobs;
  std::vector<config::RecordedValue> values;
};

}  // namespace trireme::track
