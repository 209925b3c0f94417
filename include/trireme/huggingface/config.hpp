// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"
#include "trireme/model/model_config.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::huggingface {

/// Conversion from and to a config.json that transformers 4.x and 5.x read. Every field is treated
/// as the table of folder_fields.hpp says (docs/huggingface-fields.md): what the layers here do not
/// compute (other activations, biases, sliding windows, rope scalings) is refused, and so are
/// fields that contradict one another; errors begin with `where` and the field. Fields without
/// effect are named in `warnings`.
base::Result<model::ModelConfig> parse_config(const base::Json& json,
                                              std::string_view where = "config.json",
                                              std::vector<std::string>* warnings = nullptr);
base::Json config_json(const model::ModelConfig& config);
/// The model of a folder; warnings go to the log.
base::Result<model::ModelConfig> read_config(const std::filesystem::path& folder);

/// model::from_config() with the model of the folder `model.from`, where that key is given.
base::Result<model::ModelConfig> configured_model(const config::Config& config,
                                                  std::int64_t vocabulary = 0);

}  // namespace trireme::huggingface
