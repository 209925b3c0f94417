// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/predict/machine.hpp"
#include "trireme/telemetry/predicted_step.hpp"

#include <functional>

namespace trireme::apps {

/// A step of these options as rank 0 would pass it on the machine, by the parts that runs measure.
base::Result<telemetry::PredictedStep> predicted_step(const engine::EngineOptions& options,
                                                      const predict::Machine& machine);

/// Refuses runs whose kernels are not those that a step on the machine is predicted with.
base::Status check_backend(const config::Config& config, const predict::Machine& machine);

/// Predicts steps on the machine of plan.machine; empty without one. A file that cannot be read, or
/// is no machine's or another kind's, is a failure of the prediction: runs go on without one.
std::function<base::Result<telemetry::PredictedStep>(const engine::EngineOptions&)> predictor_of(
    const config::Config& config);

}  // namespace trireme::apps
