// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/run_view.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace trireme::report {

/// Parts of the time between two steps, as rank 0 spends it.
enum class Part {
  compute,
  tensor,
  gradients,
  bubble,
  data,
  optimizer,
  save,
  evaluation,
  parameters
};
inline constexpr std::size_t part_count = 9;

struct PartText {
  const char* name;  ///< "gradient reduction"
  const char* what;  ///< a clause
  /// Null: not a number of the step's own line.
  double telemetry::StepLine::*number = nullptr;
};
const PartText& text_of(Part part);

/// Milliseconds by part.
using PartTimes = std::array<double, part_count>;
inline double& of(PartTimes& times, Part part) {
  return times[static_cast<std::size_t>(part)];
}
inline double of(const PartTimes& times, Part part) {
  return times[static_cast<std::size_t>(part)];
}
double sum_of(const PartTimes& times);

/// [step of the record]. Parts that a line lacks are within `compute`, which is what is left of the
/// step's time.
std::vector<PartTimes> part_times(const telemetry::RunRecord& record);

/// [stage]: share of the steady steps' time that it waits for others; empty where it is not
/// recorded.
std::vector<double> stage_waits(const telemetry::RunRecord& record);

/// Mean over the steady steps.
PartTimes mean_part_times(const telemetry::RunRecord& record);

/// A predicted step by the parts that its run has measured: what it has not is within compute, as
/// in mean_part_times(). Nothing where none was predicted.
struct PredictedParts {
  std::string machine;
  PartTimes times{};
};
std::optional<PredictedParts> predicted_part_times(const telemetry::RunRecord& record);

}  // namespace trireme::report
