// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/predicted_step.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::telemetry {

base::Json to_json(const PredictedStep& step) {
  base::Json json{{"machine", step.machine}};
  for (const auto& row : predicted_numbers) json[row.name] = step.*row.predicted;
  return json;
}

std::optional<PredictedStep> predicted_step_of(const RunRecord& record) {
  const auto start = std::find_if(record.events.rbegin(), record.events.rend(),
                                  [](const EventLine& event) { return event.name == "start"; });
  if (start == record.events.rend()) return std::nullopt;
  const auto found = start->line.find("prediction");
  if (found == start->line.end() || !found->is_object()) return std::nullopt;
  PredictedStep step;
  const auto machine = found->find("machine");
  if (machine == found->end() || !machine->is_string()) return std::nullopt;
  step.machine = machine->get<std::string>();
  for (const auto& row : predicted_numbers) {
    step.*row.predicted = number_of(*found, row.name);
    if (!std::isfinite(step.*row.predicted) || step.*row.predicted < 0) return std::nullopt;
  }
  return step;
}

void MeasuredStep::take(const StepLine& line) {
  constexpr std::int64_t warm_up_steps = 5;
  if (++taken_ <= warm_up_steps) return;
  ++count_;
  for (const auto& row : predicted_numbers) {
    const double number = line.*row.measured;
    if (std::isfinite(number)) sum_.*row.predicted += number;
  }
}

PredictedStep MeasuredStep::mean() const {
  auto mean = sum_;
  for (const auto& row : predicted_numbers) mean.*row.predicted /= static_cast<double>(count_);
  return mean;
}

std::string text(const PredictedStep& step) {
  return base::format(
      "step {:.1f} ms: compute {:.1f}, tensor-parallel {:.1f}, bubble {:.1f}, gradients {:.1f}, "
      "optimizer {:.1f}",
      step.step_ms, step.compute_ms(), step.tensor_comm_ms, step.bubble_ms, step.exposed_comm_ms,
      step.optimizer_ms);
}

}  // namespace trireme::telemetry
