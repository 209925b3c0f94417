// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/run_view.hpp"

#include "report/time_parts.hpp"
#include "series.hpp"

#include <string>
#include <vector>

namespace trireme::report {

/// Columns of a picture: more points share one.
inline constexpr std::size_t most_columns = 600;
/// Columns of the areas: a mean over several steps, because single ones jump.
inline constexpr std::size_t most_area_columns = 120;
/// Weight of the past in smoothed lines, as the page begins.
inline constexpr double first_smoothing = 0.9;

/// A number of steps that has a picture.
struct Curve {
  const char* id = "";
  const char* title = "";
  const char* unit = "";
  /// Null: the held-out loss, which has points of its own.
  double telemetry::StepLine::*number = nullptr;
  double factor = 1;
  bool is_smoothed = true;
  /// The picture shows the values between the first and the last hundredth, so that a few far ones
  /// do not press the others flat.
  bool leaves_far_values_out = false;
};
std::span<const Curve> all_curves();

/// Where points lie to the right, by each of the axes.
struct Abscissas {
  std::vector<double> step;
  std::vector<double> tokens;
  std::vector<double> hours;  ///< since the record's first line with a time
};

/// A run in the columns of its pictures.
struct DrawnRun {
  const RunView* run = nullptr;
  std::vector<Bucket> buckets;
  Abscissas at;
  /// Columns behind which steps are missing.
  std::vector<std::size_t> breaks;
  /// Columns with which a later start of the run begins.
  std::vector<std::size_t> starts;
  /// [curve][column]; of the held-out loss none.
  std::vector<std::vector<Range>> curves;
  Abscissas held_out_at;
  std::vector<double> held_out;
  Abscissas parts_at;
  /// [part][column of the areas], means.
  std::array<std::vector<double>, part_count> parts;

  bool is_reduced() const { return buckets.size() < run->record.steps.size(); }
};

std::vector<DrawnRun> draw(std::span<const RunView> runs);

/// Everything that the pictures show, for the page's script: JSON that may stand in a script
/// element.
std::string script_data(std::span<const DrawnRun> runs);

}  // namespace trireme::report
