// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/model/model_config.hpp"

#include <cstdint>
#include <string_view>

namespace trireme::model {

/// Whether sequences may be so long: `what` says whose, "train.sequence_length = 4096". Learned
/// positions end where they end; with rotary embedding a model computes beyond the context that it
/// was trained with, but what it says there is worth little: refused too, as the launchers of
/// inference servers do, until somebody gives the model more positions.
base::Status check_positions(const ModelConfig& config, std::string_view what,
                             std::int64_t positions);

}  // namespace trireme::model
