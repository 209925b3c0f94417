// SPDX-License-Identifier: Apache-2.0
#include "trireme/train/report.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::train {
namespace {

double ms_of(const std::optional<double>& seconds) {
  return seconds ? *seconds * 1e3 : telemetry::absent;
}

}  // namespace

double StepRecord::computing_seconds() const {
  double ms = step_ms;
  for (const double wait : {exposed_comm_ms, tensor_comm_ms, bubble_ms, parameters_ms, data_ms}) {
    if (!std::isnan(wait)) ms -= wait;
  }
  return std::max(0.0, ms) / 1e3;
}

void StepRecord::take(const engine::ScheduleOutcome& outcome) {
  bubble_ms = ms_of(outcome.bubble_seconds);
  tensor_comm_ms = ms_of(outcome.tensor_seconds);
  parameters_ms = ms_of(outcome.parameters_seconds);
}

void StepRecord::take(const engine::ReduceOutcome& outcome) {
  loss = outcome.loss;
  step_tokens = outcome.tokens;
  grad_norm = outcome.gradient_norm;
  stage_bubble_seconds = outcome.stage_bubble_seconds;
  exposed_comm_ms = ms_of(outcome.exposed_seconds);
  reduction_ms = ms_of(outcome.busy_seconds);
}

base::Json StepRecord::others() const {
  base::Json others{{"first_sample", first_sample}};
  if (!std::isnan(optimizer_ms)) {
    const double gather = update.gather_seconds * 1e3;
    const double scatter = update.scatter_seconds * 1e3;
    const double parameters = update.parameters_seconds * 1e3;
    others["optimizer_phases_ms"] = {{"gather", gather},
                                     {"compute", optimizer_ms - (gather + scatter + parameters)},
                                     {"scatter", scatter},
                                     {"parameters", parameters},
                                     {"exposed", update.exposed_seconds * 1e3}};
  }
  if (stage_bubble_seconds.size() > 1) {
    for (const double each : stage_bubble_seconds) others["stage_bubble_ms"].push_back(each * 1e3);
  }
  return others;
}

}  // namespace trireme::train
