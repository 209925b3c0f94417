// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"
#include "trireme/engine/options.hpp"

namespace trireme::train {

/// Configuration in which this run's values replace `auto`: the model's keys, the degree of data
/// parallelism, batch and seeds, and the run's directory; model.from is empty, as it is not read
/// any more. Values that are determined anew at each start or moment (threads, peak, newest step,
/// lead of a signal) stay `auto`.
config::Config with_values(const config::Config& config, const model::ModelConfig& model,
                           const engine::ScheduleOptions& schedule, const layout::Mesh& mesh);

}  // namespace trireme::train
