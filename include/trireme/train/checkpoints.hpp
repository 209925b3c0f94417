#pragma once

#include "trireme/base/json.hpp"
#include "trireme/comm/process_group.hpp"
#include "trireme/config/config.hpp"
#include "trireme/engine/engine.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace trireme::train {

/// How far a run has come: what a checkpoint holds besides tensors.
struct Progress {
  std::int64_t step = 0;
  std::uint64_t tokens = 0;
  /// Global index of the next sample.
  std::uint64_t next_sample = 0;
  /// Of the dataset that the samples come from.
  std::uint64_t data_fingerprint = 0;
};

/// Collective over the world. Saves and commits everything that training needs to go on.
/// Returns the bytes of all tensors. Throws Error (checkpoint) on every rank.
std::uint64_t save(const std::filesystem::path& run, const Progress& progress,
                   const config::Config& config, engine::Engine& engine, comm::ProcessGroup& world);

/// Collective over the world. Continues from the newest step of the run that can be loaded;
/// nothing when the run has none.
std::optional<Progress> resume(const std::filesystem::path& run, engine::Engine& engine,
                               comm::ProcessGroup& world);

/// Collective over the world. Everything from one step folder or another run's newest step.
Progress resume_from(const std::filesystem::path& path, engine::Engine& engine,
                     comm::ProcessGroup& world);

}  // namespace trireme::train
