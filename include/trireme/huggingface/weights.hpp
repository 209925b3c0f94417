// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/config/config.hpp"
#include "trireme/engine/engine.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace trireme::huggingface {

/// Whether a folder is one of Hugging Face's, with a config.json, and not ours.
bool is_model_folder(const std::filesystem::path& path);

/// Collective over the world. Fills the parameters that this rank holds from whatever people
/// have: a checkpoint step, a run (its newest verified step), or the safetensors of a Hugging
/// Face folder. An engine that trains gets masters too; its moments stay as they are. Throws
/// AgreedError (checkpoint) that names a tensor that is missing or has another shape.
void load_parameters(const std::filesystem::path& path, engine::Engine& engine,
                     comm::ProcessGroup& world);

/// Parts of parameters, and where their values lie.
struct DeviceParts {
  device::Device& device;
  std::vector<engine::ParameterPart> parts;
};
/// The same for parts of parameters, in f32 or the type that the products use.
void load_parameters(const std::filesystem::path& path, const model::ModelConfig& model,
                     const DeviceParts& parts, comm::ProcessGroup& world);

/// The tokenizer.json that belongs to weights: that of the Hugging Face folder or of the run; of a
/// step outside of a run, the one that it was trained with, when it still is where it was. Empty
/// when there is none.
std::filesystem::path tokenizer_of_weights(const std::filesystem::path& path);
/// What data.tokenizer names where that is a file, else tokenizer_of_weights(); data.tokenizer
/// where there is neither, for an error to name.
std::filesystem::path tokenizer_for(const config::Config& config,
                                    const std::filesystem::path& weights);

/// The model that such weights are of.
base::Result<model::ModelConfig> model_of_weights(const std::filesystem::path& path);
/// The same for a command that runs it: with as many positions as model.max_position_embeddings
/// gives a model with rotary embedding.
base::Result<model::ModelConfig> model_of_weights(const std::filesystem::path& path,
                                                  const config::Config& config);

}  // namespace trireme::huggingface
