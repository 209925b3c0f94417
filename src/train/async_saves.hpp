// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/background_save.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/train/checkpoints.hpp"
#include "trireme/train/report.hpp"

#include <atomic>
#include <cstddef>
#include <future>
#include <optional>

namespace trireme::train {

/// Everything that a save needs but the values of the shards.
checkpoint::SaveRequest save_request(const SavedRun& saved, engine::Engine& engine);

/// Saves that a thread writes while training goes on: one at a time, each from a copy of the state
/// in memory that is taken once.
class AsyncSaves {
 public:
  AsyncSaves(engine::Engine& engine, comm::ProcessGroup& world);
  ~AsyncSaves();
  AsyncSaves(const AsyncSaves&) = delete;
  AsyncSaves& operator=(const AsyncSaves&) = delete;

  bool is_running() const { return save_.has_value(); }
  /// Of the save that is running.
  std::int64_t step() const;
  /// True while this rank's thread works.
  bool is_busy() const { return save_ && save_->is_busy(); }
  /// Collective over the world. Begins to copy and to write the state. None is running. Throws
  /// AgreedError (checkpoint).
  void start(const SavedRun& saved);
  /// Collective over the world. Host-blocking: yes. A save that training waits for: of a GPU's
  /// state from the same memory. None is running. Throws AgreedError (checkpoint).
  checkpoint::SaveReport save_now(const SavedRun& saved);
  /// Waits until the state is copied: before it changes.
  void await_copy();
  /// Collective over the world, best when no rank is busy: the host waits for its thread. Nothing
  /// until the save is committed. Throws AgreedError (checkpoint) if it has failed. It is not
  /// running any more after a report or an error.
  std::optional<SaveRecord> advance();

 private:
  engine::Engine& engine_;
  comm::ProcessGroup& world_;
  /// Host memory for the values of this rank's shards.
  device::Arena memory_;
  /// First touch of all its pages, beside the first steps; given up at the end.
  std::atomic<bool> given_up_{false};
  std::future<void> touching_;
  double stall_seconds_ = 0;
  std::optional<checkpoint::BackgroundSave> save_;
};

}  // namespace trireme::train
