#pragma once

#include "trireme/data/dataset.hpp"
#include "trireme/train/trainer.hpp"

#include <memory>

namespace trireme::train {

/// The token files of a key of section `data`.
base::Result<std::unique_ptr<data::TokenDataset>> open_dataset(const config::Config& config,
                                                               const char* key,
                                                               const model::ModelConfig& model);

/// Makes the run directory with what is known at the start (rank 0 for all), and this rank's log:
/// the configuration as resolved, the model, and the tokenizer. The result is the directory.
base::Result<std::filesystem::path> prepare_directory(const config::Config& config,
                                                      const model::ModelConfig& model, Start start,
                                                      base::Rank rank);

/// Collective over the world. Everything from another run or step, or the weights of a Hugging
/// Face folder.
Progress start_from(const std::filesystem::path& path, engine::Engine& engine,
                    comm::ProcessGroup& world);

}  // namespace trireme::train
