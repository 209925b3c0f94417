// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/step_fields.hpp"

#include <array>
#include <cmath>

namespace trireme::telemetry {
namespace {

using Line = StepLine;

constexpr std::array<StepField, 19> all_fields{{
    {"loss", &Line::loss, "train", "trireme_loss", "Mean loss of the step in nats per token"},
    {"grad_norm", &Line::grad_norm, "train", "trireme_gradient_norm",
     "Norm of the gradients before clipping"},
    {"learning_rate", &Line::learning_rate, "train", "trireme_learning_rate",
     "Learning rate of the step"},
    {"tokens", &Line::tokens, "train", "trireme_tokens_total", "Tokens of the run so far", true},
    {"first_sample"},
    {"epochs", &Line::epochs},
    {"step_ms", &Line::step_ms, "speed", "trireme_step_seconds", "Duration of the step"},
    {"predicted_ms", &Line::predicted_ms, "speed", "trireme_predicted_step_seconds",
     "Duration of a step as the machine file of the run predicts it"},
    {"tokens_per_second", &Line::tokens_per_second, "speed", "trireme_tokens_per_second",
     "Tokens a second"},
    {"mfu", &Line::mfu, "speed", "trireme_mfu_ratio", "Model FLOPs over those of the peak"},
    {"exposed_comm_ms", &Line::exposed_comm_ms, "time", "trireme_exposed_communication_seconds",
     "Exposed reductions of gradients in the step, on rank 0"},
    {"bubble_ms", &Line::bubble_ms, "time", "trireme_bubble_seconds",
     "Waiting for other stages in the step, on rank 0"},
    {"data_ms", &Line::data_ms, "time", "trireme_data_seconds",
     "Reading samples in the step, on rank 0"},
    {"optimizer_ms", &Line::optimizer_ms, "time", "trireme_optimizer_seconds",
     "The update of the step"},
    {"optimizer_phases_ms"},
    {"reduction_ms", &Line::reduction_ms, "time", "trireme_reduction_seconds",
     "Reductions of gradients in the step, hidden ones too, on rank 0"},
    {"tensor_comm_ms", &Line::tensor_comm_ms, "time", "trireme_tensor_communication_seconds",
     "Tensor-parallel collectives in the step, on rank 0"},
    {"parameters_ms", &Line::parameters_ms, "time", "trireme_parameters_seconds",
     "Waiting in forward for what other ranks have updated, on rank 0"},
    {"stage_bubble_ms"},
}};

}  // namespace

std::span<const StepField> step_fields() {
  return all_fields;
}

base::Json to_json(const StepLine& line, const base::Json& others) {
  base::Json json{{"kind", "train"}, {"step", line.step}};
  for (const auto& field : all_fields) {
    if (field.number == nullptr) {
      const auto found = others.find(field.name);
      if (found != others.end()) json[field.name] = *found;
      continue;
    }
    const double number = line.*field.number;
    if (std::isnan(number)) continue;
    json[field.name] = number;
    if (field.is_counter) json[field.name] = static_cast<std::uint64_t>(number);
  }
  return json;
}

}  // namespace trireme::telemetry
