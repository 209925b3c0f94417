// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/config/options.hpp"
#include "trireme/engine/measure.hpp"

namespace trireme::train {

/// Collective over the world. The options with what this rank's stage computes again in backward
/// so that its ranks fit into train.memory_limit, where train.activation_checkpointing is auto;
/// elsewhere schedule zb-h2 has to fit.
/// Throws AgreedError where they cannot.
engine::EngineOptions fitted_options(const engine::EngineOptions& options,
                                     const config::TrainOptions& keys, const engine::Beside& beside,
                                     comm::ProcessGroup& world);

}  // namespace trireme::train
