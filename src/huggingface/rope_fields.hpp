// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "field_reader.hpp"

namespace trireme::huggingface {

/// Reads rope_theta and the scaling of a config.json into a model whose other fields are read. The
/// rules are those of transformers 5.24: rope_scaling counts before rope_parameters, and each of
/// them takes what it lacks from the fields beside it; a folder on which that precedence has any
/// influence is refused.
void read_rope(FieldReader& reader, model::ModelConfig& model, std::vector<std::string>& warnings);

/// rope_parameters of a model.
base::Json rope_json(const model::ModelConfig& config);

}  // namespace trireme::huggingface
