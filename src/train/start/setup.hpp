// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/record/run_lock.hpp"
#include "trireme/train/trainer.hpp"

namespace trireme::train {

/// Makes the run directory this start's own. On the first rank only. A run that is refused is not
/// changed. `job` is Identity::job.
base::Result<record::RunLock> open_run(const config::Config& config, Start start,
                                       const std::string& job);

/// Writes the files of a run that are known when its state was loaded: the configuration as
/// resolved, the model, and the tokenizer. On the first rank only. Throws Error.
void write_run_files(const config::Config& config, const model::ModelConfig& model);

/// Opens the log of every rank in a run that the first rank has opened.
base::Status enter_run(const std::filesystem::path& directory, base::Rank rank);

/// Collective over the world. For a run without any step to go on from: throws AgreedError
/// (checkpoint) if by its record there was one. A run that never came to its first save is warned
/// of the steps that are done again.
void refuse_emptied(const std::filesystem::path& directory,
                    const std::filesystem::path& checkpoints, comm::ProcessGroup& world);

/// On the first rank only. Warns of steps that a start leaves behind when it begins anew: a later
/// one goes on from the newest.
void say_left_steps(const std::filesystem::path& checkpoints);

/// Collective. Logs which attention is used, and why not a faster one; fails where there is none.
void say_attention(const device::Kernels& kernels, const device::AttentionSize& size,
                   comm::ProcessGroup& world);

/// Logs how many documents a mask keeps apart (train.document_mask).
void say_documents(const data::TokenDataset& dataset);

/// On the first rank only. Logs what a start changes of its run.
void say_changes(const config::Config& resolved);

/// Collective over the world. Loads the complete state of another run or step, or the weights of a
/// Hugging Face folder.
Resumed start_from(const std::filesystem::path& path, engine::Engine& engine,
                   comm::ProcessGroup& world, const checkpoint::LoadOptions& options);

/// A step as it is predicted, on the first rank only; nothing where nobody predicts it.
std::optional<telemetry::PredictedStep> predicted_step(const StartOptions& start,
                                                       const engine::EngineOptions& options);

}  // namespace trireme::train
