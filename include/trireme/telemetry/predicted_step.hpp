// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/telemetry/run_record.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace trireme::telemetry {

/// A step of rank 0 as it was predicted at the start of a run, by the parts that are measured too.
struct PredictedStep {
  /// Name of the machine's file.
  std::string machine;
  double step_ms = 0;
  double tensor_comm_ms = 0;
  double bubble_ms = 0;
  double exposed_comm_ms = 0;
  double optimizer_ms = 0;

  /// Rest of the step.
  double compute_ms() const {
    return step_ms - (tensor_comm_ms + bubble_ms + exposed_comm_ms + optimizer_ms);
  }
  bool operator==(const PredictedStep&) const = default;
};

/// Numbers of a predicted step, beside those of a line that they predict.
struct PredictedNumber {
  const char* name = "";
  double PredictedStep::*predicted = nullptr;
  double StepLine::*measured = nullptr;
};
inline constexpr std::array predicted_numbers{
    PredictedNumber{"step_ms", &PredictedStep::step_ms, &StepLine::step_ms},
    PredictedNumber{"tensor_comm_ms", &PredictedStep::tensor_comm_ms, &StepLine::tensor_comm_ms},
    PredictedNumber{"bubble_ms", &PredictedStep::bubble_ms, &StepLine::bubble_ms},
    PredictedNumber{"exposed_comm_ms", &PredictedStep::exposed_comm_ms, &StepLine::exposed_comm_ms},
    PredictedNumber{"optimizer_ms", &PredictedStep::optimizer_ms, &StepLine::optimizer_ms}};

/// Mean of a start's steps by the same parts, but of its first ones, which warm up.
class MeasuredStep {
 public:
  void take(const StepLine& line);
  std::int64_t count() const { return count_; }
  /// Needs a step; parts that lines do not have are 0, and so within compute.
  PredictedStep mean() const;

 private:
  PredictedStep sum_;
  std::int64_t taken_ = 0;
  std::int64_t count_ = 0;
};

/// {"machine", "step_ms", ...}: `prediction` of a start's event.
base::Json to_json(const PredictedStep& step);
/// The prediction of the newest start; nothing where it has none, or one that is not whole.
std::optional<PredictedStep> predicted_step_of(const RunRecord& record);

/// "step 12.3 ms: compute 9.1, tensor_comm 1.0, ...".
std::string text(const PredictedStep& step);

}  // namespace trireme::telemetry
