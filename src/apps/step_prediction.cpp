// SPDX-License-Identifier: Apache-2.0
#include "apps/step_prediction.hpp"

#include "trireme/base/format.hpp"
#include "trireme/plan/time_plan.hpp"

namespace trireme::apps {

base::Result<telemetry::PredictedStep> predicted_step(const engine::EngineOptions& options,
                                                      const predict::Machine& machine) {
  if (auto status = plan::check_predicted(options); !status.ok()) return status.failure();
  const auto step = predict::predict_step(machine, plan::workload_of(options, machine));
  if (!step) return step.failure();
  const auto milliseconds = [](predict::Time time) { return 1e3 * predict::seconds_of(time); };
  const auto& parts = step->of_first_rank;
  using predict::Part;
  return telemetry::PredictedStep{
      .machine = machine.name,
      .step_ms = milliseconds(step->total()),
      .tensor_comm_ms = milliseconds(parts[Part::tensor]),
      // Runs measure both as waiting for messages of other stages.
      .bubble_ms = milliseconds(parts[Part::bubble] + parts[Part::pipeline]),
      .exposed_comm_ms = milliseconds(parts[Part::data]),
      .optimizer_ms = milliseconds(parts[Part::optimizer])};
}

base::Status check_backend(const config::Config& config, const predict::Machine& machine) {
  const auto& numerics = config.options().numerics;
  if (numerics.backend == config::KernelBackend::reference) {
    return base::usage_failure(
        "numerics.backend = reference has no predicted step (its kernels are there to be compared "
        "with, and as slow as they are simple); use cpu or cuda");
  }
  const bool on_gpus = numerics.on_gpus();
  if (on_gpus != machine.node.computes_on_cores()) return {};
  return base::usage_failure(
      base::format("numerics.backend = {} computes on {}, and machine '{}' has node.gpus = {}; "
                   "name a machine file of such processors",
                   config.shown("numerics.backend"), on_gpus ? "GPUs" : "cores", machine.name,
                   machine.node.gpus));
}

std::function<base::Result<telemetry::PredictedStep>(const engine::EngineOptions&)> predictor_of(
    const config::Config& config) {
  const auto& file = config.options().plan.machine;
  if (file.empty()) return {};
  // Read when it is asked: by the first rank alone, and not by all of a world.
  return [file,
          config](const engine::EngineOptions& options) -> base::Result<telemetry::PredictedStep> {
    const auto machine = predict::read_machine(file);
    if (!machine) return machine.failure();
    if (auto status = check_backend(config, *machine); !status) return status.failure();
    return predicted_step(options, *machine);
  };
}

}  // namespace trireme::apps
