// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/comm/process_group.hpp"
#include "trireme/config/config.hpp"
#include "trireme/layout/mesh.hpp"
#include "trireme/model/model_config.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// The continuation of a run by a start, which takes over what earlier starts have fixed. A run
/// keeps what its weights are made of, its model and its tokenizer, and its batch; everything else
/// may change from one start to the next.
namespace trireme::train {

/// Origin of values that a start takes over from its run.
inline constexpr std::string_view own_value = "the run's own";

/// Configuration of a start with what it takes over, and what there is to say of it: a sentence
/// each.
struct Continuation {
  config::Config config;
  std::vector<std::string> notes = {};
};

/// The configuration of a start that goes on with its run: keys of the model have the run's values,
/// and a train.global_batch of `auto` is the run's batch in sequences. The same configuration where
/// there is no step to go on from. One process alone reads the manifest of the newest step; nothing
/// is written. Failures: keys or a tokenizer that contradict the run (usage); weights of
/// checkpoint.load that are not there (checkpoint), or whose tensors are another model's (usage).
base::Result<Continuation> continued(const config::Config& config);

/// Collective over the world. continued() of the first rank on all ranks, with_own_batch(); their
/// notes are logged.
config::Config continued_together(const config::Config& config, const layout::Mesh& mesh,
                                  comm::ProcessGroup& world);

/// The configuration with the largest train.micro_batch, up to the given one, with which these
/// replicas make the run's own batch. The same configuration where the batch is not the run's.
/// Failure (usage): they cannot share it evenly.
base::Result<Continuation> with_own_batch(const config::Config& config, const layout::Mesh& mesh);

/// Fails (checkpoint) if data.tokenizer names a file that is missing, and the run has none.
base::Status check_tokenizer_is_there(const config::Config& config);

/// Fails (checkpoint) if run.directory cannot be made or written to; writes nothing.
base::Status check_run_directory(const config::Config& config);

/// Fails (usage) if a step of a run is of another model: its weights mean nothing in this one.
base::Status check_model(const model::ModelConfig& model, const base::Json& state,
                         const std::filesystem::path& run);

/// Keys whose values differ from those that the last start of the run has recorded, if they concern
/// its numbers or its layout: "train.steps 100 -> 200". Empty where there is no record, or one of a
/// version with other keys.
std::vector<std::string> changes_since_last_start(const config::Config& resolved);

}  // namespace trireme::train
