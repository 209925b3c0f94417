// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/peer_error.hpp"
#include "trireme/record/run_lock.hpp"
#include "trireme/train/checkpoints.hpp"
#include "trireme/train/report.hpp"

#include "train/requests.hpp"
#include "train/saving/async_saves.hpp"
#include "train/saving/auto_interval.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

namespace trireme::train {

/// Checkpoints of a run: when they are due, beside training or not, what is removed after them and
/// what their failure means.
class Saver {
 public:
  /// A run whose steps are saved.
  struct Run {
    const config::Options& keys;
    /// The configuration with values in place of `auto`.
    const config::Config& resolved;
    const std::filesystem::path& directory;
    /// Where the steps are.
    const std::filesystem::path& checkpoints;
    const std::string& tool_version;
    /// Secret that manifests are signed with, on the first rank; empty: they are not.
    std::string key;
    /// The file system that saves write with.
    checkpoint::FileSystem& files;
    /// Lock of the run on the first rank, null on others.
    const record::RunLock* lock;
    /// On the first rank, where checkpoint.every_minutes is auto; else null.
    AutoInterval* interval = nullptr;
  };

  /// Collective over the world. All that is given outlives the saver, but for `run`.
  Saver(Run run, const Progress& progress, engine::Engine& engine, comm::ProcessGroup& world,
        Requests& requests, Report& report);
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  ~Saver() = default;

  /// Notes that the state was loaded from a step of the run itself.
  void loaded() { loaded_step_ = saved_step_ = progress_.step; }
  /// Removes steps of the nodes behind the state, which the run has gone back to.
  void forget_later_steps() {
    if (async_saves_) async_saves_->forget_after(progress_.step);
  }
  /// The step of this run that this start has loaded.
  std::optional<std::int64_t> loaded_step() const { return loaded_step_; }
  /// The newest step on disk that this start has saved or loaded; -1: none.
  std::int64_t saved_step() const { return saved_step_; }
  /// True if the state of now is on disk.
  bool is_saved() const { return saved_step_ == progress_.step; }
  /// Brings the newest step of the nodes' own storage to the run directory, if it is newer.
  void recover_from_nodes();
  checkpoint::LoadOptions load_options() const;

  /// Whether the state after this step is among the best of the run, by its held-out loss.
  void set_among_best(bool among_best) { is_among_best_ = among_best; }
  bool is_among_best() const { return is_among_best_; }
  bool is_due() const;
  /// One in the nodes' own storage, beside those in the run directory.
  bool is_due_on_nodes() const;
  /// Saves what is due; a failure on all ranks is logged, and training goes on.
  void save_if_due();
  /// Saves while training waits, and removes older steps.
  void save();
  /// The same, and no step is removed: the one that is saved may be worse than they are.
  void save_without_pruning();

  /// Takes the running save one part further if no rank is busy with it; the answer of
  /// Requests::ask() tells.
  void poll();
  /// Before the state changes: waits until the running save has copied it.
  void await_copy() {
    if (async_saves_) async_saves_->await_copy();
  }
  /// Waits until no save is running.
  void finish();
  /// Waits for a tidy() beside training: it takes the folder of a save for garbage.
  void await_tidying() const;
  /// Work of this rank's threads.
  BusyThreads busy() const;
  /// Longest time that a save has taken; an estimate until one was timed.
  double expected_seconds() const;

  /// Removes the remains of killed saves, and the oldest steps except the one that this start has
  /// just saved or loaded; failures to remove are ignored.
  void tidy() const { tidy(saved_step_); }
  /// Gives the nodes' storage back, when the run directory has all that the run needs.
  void leave_nodes() {
    if (async_saves_) async_saves_->leave_nodes();
  }

 private:
  /// Everything that a checkpoint of this moment holds beside tensors.
  SavedRun to_save();
  /// Throws Error (launch) if another start, or a copy of the run, has taken over its lock or its
  /// checkpoint.directory.
  void check_ownership() const;
  void save_or_go_on();
  /// Begins a save that is written while training goes on, after the one before has ended.
  void start(Goal goal);
  /// False if that has failed.
  bool has_started(Goal goal);
  /// Saves that the nodes' own storage refuses go to the run directory at once.
  void poll_save();
  /// Copies of steps from the nodes to the run directory.
  void drain();
  void finish_draining();
  /// Notes the end of a part, if `record` is there; failures as not_saved() does.
  void took_part(std::int64_t step, SaveRecord::Tier tier,
                 const std::function<std::optional<SaveRecord>()>& part);
  /// Notes a committed step.
  void committed(const SaveRecord& record);
  /// Notes that a step was not saved; throws after too many in a row.
  void not_saved(std::int64_t step, SaveRecord::Tier tier, const comm::AgreedError& error);
  /// Where the save goes that is running or was tried last.
  SaveRecord::Tier tier() const;
  void tidy(std::int64_t newest) const;
  bool is_tidying() const;

  const Run run_;
  const config::CheckpointOptions& keys_;
  const Progress& progress_;
  engine::Engine& engine_;
  comm::ProcessGroup& world_;
  Requests& requests_;
  Report& report_;
  /// Contents of each checkpoint.
  const checkpoint::Contents contents_;
  /// Null where saves are not asynchronous; ends before what it copies from.
  std::unique_ptr<AsyncSaves> async_saves_;
  /// Tidying after the last asynchronous save, on the first rank.
  std::future<void> tidying_;
  /// In a row.
  int failed_ = 0;
  bool is_among_best_ = false;
  std::int64_t saved_step_ = -1;
  std::optional<std::int64_t> loaded_step_;
  double longest_seconds_ = 0;
};

}  // namespace trireme::train
