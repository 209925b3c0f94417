// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/config/config.hpp"
#include "trireme/engine/engine.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace trireme::huggingface {

/// True if a folder is a Hugging Face folder, with a config.json, and not a run of Trireme.
bool is_model_folder(const std::filesystem::path& path);

/// Collective over the world. Fills the parameters that this rank holds from any form of weights: a
/// checkpoint step, a run (its newest verified step), or the safetensors of a Hugging Face folder.
/// A step must be signed with the key, unless that is empty; only rank 0's is used. An engine that
/// trains gets masters too; its moments stay as they are. Throws AgreedError (checkpoint) that
/// names a tensor that is missing or has another shape, or a step without the signature.
void load_parameters(const std::filesystem::path& path, engine::Engine& engine,
                     comm::ProcessGroup& world, const std::string& key = {});

/// Parts of parameters, and the tensors of their values.
struct DeviceParts {
  device::Device& device;
  std::vector<engine::ParameterPart> parts;
};
/// Loads parts of parameters, in f32 or the type of the GEMMs.
void load_parameters(const std::filesystem::path& path, const model::ModelConfig& model,
                     const DeviceParts& parts, comm::ProcessGroup& world,
                     const std::string& key = {});

/// The tokenizer.json that belongs to weights: that of the Hugging Face folder or of the run; of a
/// step outside of a run, the one that it was trained with, when it still is where it was. Empty
/// when there is none.
std::filesystem::path tokenizer_of_weights(const std::filesystem::path& path);
/// Path of the tokenizer: data.tokenizer where that is a file, else tokenizer_of_weights();
/// data.tokenizer where there is neither, for an error to name.
std::filesystem::path tokenizer_for(const config::Config& config,
                                    const std::filesystem::path& weights);

/// Model of the weights.
base::Result<model::ModelConfig> model_of_weights(const std::filesystem::path& path);
/// Model of the weights for a command that runs it: a model with rotary embedding gets the number
/// of positions in model.max_position_embeddings.
base::Result<model::ModelConfig> model_of_weights(const std::filesystem::path& path,
                                                  const config::Config& config);

}  // namespace trireme::huggingface
