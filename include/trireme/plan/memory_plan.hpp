// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"
#include "trireme/device/library_memory.hpp"
#include "trireme/engine/choose_recompute.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/model/model_config.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trireme::plan {

struct RankMemory {
  base::Rank rank;
  /// Largest memory of a training run, by purpose: to the byte, not an estimate.
  engine::MemoryUse bytes{};
  /// Host memory beside that: the copy of the rank's state from which checkpoints are written while
  /// training goes on, and of those of ranks on other nodes (checkpoint.replicas), at most; 0 where
  /// they are not.
  std::size_t snapshot_bytes = 0;
};

/// Meaning of a configuration on so many ranks, computed without any of them.
struct MemoryPlan {
  /// Options of rank 0: model, mesh, schedule and batches are those of every rank.
  engine::EngineOptions options;
  /// Parameters of the whole model; a tied table counts once.
  std::int64_t parameter_count = 0;
  std::int64_t tokens_per_step = 0;
  /// Idle share of a step when a backward takes as long as two forwards, stages are equal and
  /// messages take no time.
  double bubble_fraction = 0;
  /// With train.activation_checkpointing = auto: what each stage computes again.
  std::vector<engine::ChosenRecompute> chosen;
  /// Ranks measured, ascending.
  std::vector<RankMemory> ranks;
  /// Largest memory of libraries, in addition to all that, on every rank's GPU; empty on CPUs. The
  /// driver's context comes on top: the driver decides its size, which is known only on a GPU.
  std::vector<device::LibraryMemory> libraries;

  /// Text about attention that a run's start will log on GPUs, supposed that they are of the Hopper
  /// generation and have cuDNN; nothing on CPUs.
  std::optional<device::AttentionText> attention;

  const RankMemory& largest() const;
};

/// Ranks to measure: all, or one.
struct Ranks {
  std::optional<base::Rank> only = std::nullopt;
};

/// Runs a step of each kind of rank (stage, tensor-parallel part, and what it owns of matrices),
/// and the decoder of its samples, over measuring memory (engine::measure). The failure is a user's
/// mistake: a mesh that the world or the model does not fit, batches that do not divide, a rank
/// outside of the world, prompts that cannot be read.
base::Result<MemoryPlan> plan_memory(const config::Config& config, const model::ModelConfig& model,
                                     int world_size, const Ranks& ranks = {});

/// Text for people: the run in words, then a table of ranks by purpose; neighbours with the same
/// row share it.
std::string text(const MemoryPlan& plan);

/// {"architecture", "parameters", "world_size", "mesh": {"pp": ..}, "schedule", "virtual_stages",
///  "micro_batches", "tokens_per_step", "bubble_fraction", "activation_checkpointing": ["norms",
///  ..] by stage, "largest": {"rank", "total"}, "ranks": [{"rank", "coordinates": {"pp": ..},
///  "bytes": {"parameters": .., .., "total"}, "snapshot"}], "not_counted": ["what", ..],
///  "libraries": {"cuBLASLt": bytes, ..}, "attention": "by what"}, the last two with
/// numerics.backend = cuda.
base::Json to_json(const MemoryPlan& plan);

}  // namespace trireme::plan
