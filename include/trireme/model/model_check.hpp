// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/model/model_config.hpp"

#include <string_view>

namespace trireme::model {

/// check() of a model that another file than a configuration describes: errors begin with `place`
/// ("DIR/config.json: "), and their keys have no "model." before them.
base::Status check(const ModelConfig& config, std::string_view place);

}  // namespace trireme::model
