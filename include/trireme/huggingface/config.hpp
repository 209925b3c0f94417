// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"
#include "trireme/model/model_config.hpp"

#include <cstdint>
#include <filesystem>

namespace trireme::huggingface {

/// Conversion from and to a config.json that transformers 4.x and 5.x read. Refuses, by name,
/// features that the layers here do not compute (other activations, biases, sliding windows, rope
/// scalings).
base::Result<model::ModelConfig> parse_config(const base::Json& json);
base::Json config_json(const model::ModelConfig& config);
base::Result<model::ModelConfig> read_config(const std::filesystem::path& folder);

/// model::from_config() with the model of the folder `model.from`, where that key is given.
base::Result<model::ModelConfig> configured_model(const config::Config& config,
                                                  std::int64_t vocabulary = 0);

}  // namespace trireme::huggingface
