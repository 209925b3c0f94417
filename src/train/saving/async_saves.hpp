// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/background_save.hpp"
#include "trireme/checkpoint/node_tier.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/telemetry/spans.hpp"
#include "trireme/train/checkpoints.hpp"
#include "trireme/train/report.hpp"

#include "train/requests.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>

namespace trireme::train {

/// Everything that a save needs but the values of the shards.
checkpoint::SaveRequest save_request(const SavedRun& saved, engine::Engine& engine);

/// Storage that a save is for.
enum class Goal {
  run,   ///< the run directory, perhaps by way of the nodes' own storage
  nodes  ///< the nodes' own storage alone
};

/// Saves that threads write while training goes on: one at a time from a copy of the state in
/// memory that is taken once. With a tier of nodes that one goes to the nodes, and when it is to
/// reach the run directory, a second thread copies its files there.
class AsyncSaves {
 public:
  /// `contents` are saved_contents() of the engine.
  AsyncSaves(engine::Engine& engine, comm::ProcessGroup& world,
             const checkpoint::Contents& contents, std::optional<checkpoint::NodeTier> tier);
  ~AsyncSaves();
  AsyncSaves(const AsyncSaves&) = delete;
  AsyncSaves& operator=(const AsyncSaves&) = delete;

  /// A save from memory.
  bool is_running() const { return save_.has_value(); }
  /// Step of the save that is running.
  std::int64_t step() const;
  /// The save that is running, or was tried last, is for the nodes.
  bool is_for_nodes() const { return is_for_nodes_; }
  /// The same of a copy from the nodes to the run directory.
  bool is_draining() const { return drain_.has_value(); }
  std::int64_t draining_step() const;
  /// Work of this rank's threads.
  BusyThreads busy() const { return {save_ && save_->is_busy(), drain_ && drain_->is_busy()}; }

  /// Collective over the world. Begins to copy and to write the state. None is running. Training
  /// waits for it since `begin`. Throws AgreedError (checkpoint); of one for the nodes that was for
  /// the run directory, too, the next call for that passes the nodes.
  void start(const SavedRun& saved, Goal goal, telemetry::SpanClock::time_point begin);
  /// Collective over the world. Host-blocking: yes. A save to the run directory that training waits
  /// for: of a GPU's state from the same memory. None is running. Throws AgreedError (checkpoint).
  checkpoint::SaveReport save_now(const SavedRun& saved);
  /// Waits until the state is copied: before it changes.
  void await_copy();
  /// Collective over the world, best when no rank is busy: the host waits for its thread. Nothing
  /// until the save is committed. Throws AgreedError (checkpoint) if it has failed. It is not
  /// running any more after a report or an error.
  std::optional<SaveRecord> poll();
  /// True if the nodes have not taken a step that is for the run directory, too: its values are
  /// still in memory.
  bool is_refused() const { return refused_.has_value(); }
  std::int64_t refused_step() const;
  /// Collective over the world. Begins to save it to the run directory, where nothing else is being
  /// saved or removed. Throws AgreedError (checkpoint).
  void start_again();
  /// True if a step of the nodes is to be copied to the run directory, where nothing else is being
  /// saved or removed.
  bool is_to_drain() const { return waiting_ && !drain_ && (!save_ || is_for_nodes_); }
  std::int64_t waiting_step() const;
  /// Collective over the world. Begins that. Throws AgreedError (checkpoint).
  void start_draining();
  std::optional<SaveRecord> poll_drain();
  /// True if a save for the run directory would go there at once.
  bool passes_nodes() const { return !nodes_ || nodes_->failed; }

  /// Null without one.
  const checkpoint::NodeTier* tier() const { return nodes_ ? &nodes_->tier : nullptr; }
  /// Removes steps of the nodes above this one, which the run has gone back to. None is running.
  void forget_after(std::int64_t step);
  /// Gives the nodes' storage back, when the run directory has all that the run needs.
  void leave_nodes();

 private:
  struct Nodes {
    checkpoint::NodeTier tier;
    /// Host memory for the values of ranks of which this one holds copies.
    device::Arena copies;
    /// The last save has failed: what is due in the run directory goes there at once.
    bool failed = false;
  };
  /// A save to the run directory.
  struct ToRun {
    checkpoint::SaveRequest request;
    std::function<void()> before_commit;
    checkpoint::FileSystem* files;
  };

  void save_to_run(std::optional<checkpoint::BackgroundSave>& save, ToRun what);
  /// Removes steps of this node that are not needed any more, beside training.
  void prune_node(std::int64_t newest);

  engine::Engine& engine_;
  comm::ProcessGroup& world_;
  /// Null without a tier.
  std::unique_ptr<Nodes> nodes_;
  /// Host memory for the values of this rank's shards.
  device::Arena memory_;
  /// First touch of all its pages, beside the first steps; given up at the end.
  std::atomic<bool> given_up_{false};
  std::future<void> touching_;
  std::future<void> pruning_;
  double stall_seconds_ = 0;
  std::optional<checkpoint::BackgroundSave> save_;
  bool is_for_nodes_ = false;
  /// The save that goes to the run directory after the running one, from its values in memory.
  std::optional<ToRun> after_save_;
  /// The same when that save has failed.
  std::optional<ToRun> refused_;
  /// The newest step that waits for the drain before it.
  std::optional<ToRun> waiting_;
  std::optional<checkpoint::BackgroundSave> drain_;
};

}  // namespace trireme::train
