// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/memory.hpp"
#include "trireme/engine/options.hpp"
#include "trireme/inference/samples.hpp"
#include "trireme/layout/chunk_buffers.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

/// Memory of many layouts of one model. Private to the room.
namespace trireme::plan {

/// Bytes as plan_memory() has them, each kind of rank measured once: layouts share stages that are
/// alike. For several threads at a time.
class LayoutMemory {
 public:
  /// Memory that is compared: of a rank's own device, or of a node that all ranks share.
  enum class Owner { rank, node };

  LayoutMemory(std::optional<inference::SampleTask> samples, Owner owner)
      : samples_(std::move(samples)), owner_(owner) {}

  /// Bytes of the largest rank, or of all ranks. What is more than `enough` is found early: the
  /// result may then be less than all, but more than that.
  std::size_t needed(const engine::EngineOptions& options, std::size_t enough);
  /// Bytes that needed() does not fall below, found without running the layout: those of its
  /// layers, and on the first stage of its table, too.
  std::size_t least(const engine::EngineOptions& options);
  /// [stage]: bytes of its largest rank.
  std::vector<std::size_t> largest_by_stage(const engine::EngineOptions& options);
  /// The same with one stage, and one micro-batch.
  static engine::ScheduleOptions one_stage(engine::ScheduleOptions schedule);
  /// Kinds of ranks that were measured.
  std::size_t measured() const { return measured_.size(); }

 private:
  using Key = std::vector<std::int64_t>;

  /// A stage, as far as its memory depends on it.
  struct Stage {
    int index = 0;
    bool is_first = false;
    bool is_last = false;
    /// [chunk]
    std::vector<int> layers;
    std::vector<layout::ChunkBuffers> buffers;

    /// Whether the other needs no more.
    bool covers(const Stage& other) const;
  };
  /// Ranks of a stage that are alike, by one of them.
  struct Member {
    int tensor = 0;
    int data = 0;
    int count = 1;
  };

  /// Bytes of weights, gradients and states: of a layer, and of all else on the first stage, of two
  /// layers at least.
  struct State {
    std::size_t layer = 0;
    std::size_t rest = 0;
  };

  using Stages = std::shared_ptr<const std::vector<Stage>>;
  using Members = std::shared_ptr<const std::vector<Member>>;

  static bool are_alike(const std::vector<Stage>& one, const std::vector<Stage>& other);
  /// The one stage whose units take all micro-batches in turn.
  Stages stage_of_units(const engine::EngineOptions& options);
  /// Stages as they are with so many micro-batches.
  Stages stages_of(const engine::EngineOptions& options, int micro_batches);
  /// Micro-batches with which the schedule holds as much as with all of them.
  int micro_batches_measured(const engine::EngineOptions& options);
  static base::Rank rank_of(const layout::Mesh& mesh, int stage, int tensor, int data);
  /// Settings that what ranks of a stage own depends on.
  static Key owners_key(const engine::EngineOptions& options, const Stage& stage);
  Members members_of(const engine::EngineOptions& options, const Stage& stage);
  engine::MemoryUse use_of(const engine::EngineOptions& options, const Stage& stage,
                           const Member& member, int micro_batches);
  /// The same where units take all micro-batches in turn, of which each takes as much as another.
  engine::MemoryUse use_in_turn(const engine::EngineOptions& options, const Member& member);
  /// The same of a step whose passes take next to nothing: what its updates do.
  engine::MemoryUse use_of_updates(const engine::EngineOptions& options, const Stage& stage,
                                   const Member& member);
  std::size_t bytes_of(const engine::EngineOptions& options, const Stage& stage,
                       const Member& member, int micro_batches);
  /// Bytes of the stage's largest rank.
  std::size_t largest_of(const engine::EngineOptions& options, const Stage& stage,
                         int micro_batches);
  std::size_t stage_bytes(const engine::EngineOptions& options, const Stage& stage,
                          int micro_batches);
  /// Tokens of one more micro-batch of a step.
  std::size_t batch_bytes(const engine::EngineOptions& options);
  /// Bytes that a layer more takes of activations for one micro-batch.
  std::size_t layer_activations(const engine::EngineOptions& options,
                                const config::ActivationSet& again);
  State layer_state(const engine::EngineOptions& options);
  std::size_t least_of_stage(const engine::EngineOptions& options, const Stage& stage);
  /// Stages that no other one covers, in descending order of the least that they take.
  std::vector<Stage> largest_first(const engine::EngineOptions& options,
                                   const std::vector<Stage>& stages);

  /// Value under the key, made outside of the lock where there is none.
  template <typename Value, typename Make>
  Value found_or_made(std::map<Key, Value>& values, const Key& key, Make&& make) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = values.find(key); found != values.end()) return found->second;
    }
    auto made = make();
    const std::lock_guard lock(mutex_);
    return values.try_emplace(key, std::move(made)).first->second;
  }

  std::optional<inference::SampleTask> samples_;
  Owner owner_;
  std::mutex mutex_;
  std::map<Key, engine::MemoryUse> measured_;
  std::map<Key, engine::MemoryUse> updates_;
  std::map<Key, Members> members_;
  std::map<Key, std::size_t> batches_;
  std::map<Key, std::size_t> activations_;
  std::map<Key, State> states_;
  std::map<Key, Stages> stages_;
  std::map<Key, int> micro_batches_;
};

}  // namespace trireme::plan
