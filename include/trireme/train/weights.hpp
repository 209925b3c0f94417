#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/engine/engine.hpp"

#include <filesystem>

namespace trireme::train {

/// Fills the parameters that this rank holds (their masters, when the engine trains) from the
/// safetensors of a Hugging Face folder; call Engine::state_changed() on training engines after
/// it. Throws Error (checkpoint) that names a tensor that is missing or has another shape.
void load_huggingface(const std::filesystem::path& folder, engine::Engine& engine);

/// Collective over the world. Parameters of an engine without training state, from whatever
/// people have: a checkpoint step, a run, or a Hugging Face folder.
void load_parameters(const std::filesystem::path& path, engine::Engine& engine,
                     comm::ProcessGroup& world);

/// The model that such weights are of.
base::Result<model::ModelConfig> model_of_weights(const std::filesystem::path& path);

/// Writes a step (or a run's newest) as a Hugging Face folder: config.json, safetensors and, when
/// `tokenizer` names one, tokenizer.json. Throws Error (checkpoint).
void export_huggingface(const std::filesystem::path& step, const std::filesystem::path& folder,
                        const std::filesystem::path& tokenizer);

}  // namespace trireme::train
