// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/runtime/run_lock.hpp"
#include "trireme/train/trainer.hpp"

namespace trireme::train {

/// Makes the run directory this start's own, with what is known at the start: the configuration as
/// resolved, the model, and the tokenizer. For the first rank alone. Nothing of a run that is
/// refused is changed. `job` is Identity::job.
base::Result<runtime::RunLock> open_run(const config::Config& config,
                                        const model::ModelConfig& model, Start start,
                                        const std::string& job);

/// Every rank's log in a run that the first one has opened.
base::Status enter_run(const std::filesystem::path& directory, base::Rank rank);

/// Collective over the world. Everything from another run or step, or the weights of a Hugging
/// Face folder.
Progress start_from(const std::filesystem::path& path, engine::Engine& engine,
                    comm::ProcessGroup& world);

}  // namespace trireme::train
