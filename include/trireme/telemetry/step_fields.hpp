// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/telemetry/run_record.hpp"

#include <span>

namespace trireme::telemetry {

/// A field of lines of kind `train`, and what trackers make of it. A new number of a step is a row
/// here and a member of StepLine, which is set where it is measured (train::StepRecord); its
/// meaning stands in docs/run-directory.md.
struct StepField {
  /// Ends with the unit where it has one: "step_ms".
  const char* name = "";
  /// Null: no single number, or one that no program here reads.
  double StepLine::*number = nullptr;
  /// Trackers call it "time/data_ms"; empty: they do not get it.
  const char* group = "";
  /// Name for Prometheus, in base units.
  const char* exposition = "";
  const char* help = "";
  /// True of a whole number that only grows.
  bool is_counter = false;
};

/// All of them, in the order in which a line has them.
std::span<const StepField> step_fields();

/// The line, without what every line of the record has, and without numbers that are absent.
/// `others` has the values of fields without a `number`, by name.
base::Json to_json(const StepLine& line, const base::Json& others);

}  // namespace trireme::telemetry
