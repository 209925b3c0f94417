// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/checkpoint/load.hpp"
#include "trireme/checkpoint/save.hpp"
#include "trireme/comm/process_group.hpp"
#include "trireme/config/config.hpp"
#include "trireme/engine/engine.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace trireme::train {

/// Progress of a run: the part of a checkpoint besides tensors.
struct Progress {
  std::int64_t step = 0;
  /// Updates that the optimizer's state has had: fewer than steps where steps were skipped, or
  /// where another optimizer made the first ones.
  std::int64_t updates = 0;
  std::uint64_t tokens = 0;
  /// Global index of the next sample.
  std::uint64_t next_sample = 0;
  /// Fingerprint of the dataset that the samples come from.
  std::uint64_t data_fingerprint = 0;
  /// A stop has interrupted the evaluation after this step.
  bool evaluation_is_due = false;
  /// train.steps of the start that saved it; 0 where it is not recorded.
  std::int64_t planned_steps = 0;
  /// Loss on held-out data after this step, where it was evaluated.
  std::optional<double> validation_loss = {};
  /// Lowest of these of the run so far, ascending: as many as checkpoint.keep_best.
  std::vector<double> best_losses = {};

  /// Notes an evaluation after this step. True if its loss is among the `keep` lowest of the run.
  bool evaluated(double loss, int keep);

  /// Counts a step of so many samples and tokens; returns the tokens of the run so far.
  std::uint64_t advance(std::int64_t samples, std::int64_t step_tokens) {
    validation_loss.reset();
    next_sample += static_cast<std::uint64_t>(samples);
    return tokens += static_cast<std::uint64_t>(step_tokens);
  }
};

/// Contents of a checkpoint besides tensors, and its place.
struct SavedRun {
  const std::filesystem::path& run;
  /// checkpoint::checkpoints_of_run().
  const std::filesystem::path& checkpoints;
  const Progress& progress;
  const config::Config& config;
  /// "trireme 0.1.0 (1a2b3c4)".
  const std::string& tool_version;
  /// Where it holds the state: the same in every save of a start.
  const checkpoint::Contents& contents;
  /// See checkpoint::SaveOptions.
  std::function<void()> before_commit = nullptr;
  /// See checkpoint::SaveRequest.
  std::string key = {};
  /// See checkpoint::SaveOptions.
  checkpoint::FileSystem& files = checkpoint::FileSystem::system();
  /// before_commit of steps on nodes, which need nothing of where `checkpoints` is.
  std::function<void()> before_node_commit = nullptr;
};

/// Collective over the world. Saves and commits everything that training needs to go on.
/// Throws Error (checkpoint) on every rank.
checkpoint::SaveReport save(const SavedRun& saved, engine::Engine& engine,
                            comm::ProcessGroup& world);

/// A state that was loaded.
struct Resumed {
  Progress progress;
  /// Report of what was read for it; nothing of Hugging Face weights.
  std::optional<checkpoint::LoadReport> report;
};

/// Collective over the world. Continues from the newest of these steps of a run that can be loaded;
/// nothing when there is none.
std::optional<Resumed> resume(const std::filesystem::path& checkpoints, engine::Engine& engine,
                              comm::ProcessGroup& world,
                              const checkpoint::LoadOptions& options = {});

/// Collective over the world. Loads the complete state from one step folder or another run's newest
/// step.
Resumed resume_from(const std::filesystem::path& path, engine::Engine& engine,
                    comm::ProcessGroup& world, const checkpoint::LoadOptions& options = {});

}  // namespace trireme::train
