// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/save.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace trireme::checkpoint {

/// A save whose files are written by a thread while the rank goes on. Collectives are called by the
/// rank's own thread alone, at points where all ranks are: when no rank is busy any more.
class BackgroundSave {
 public:
  /// Collective over the group. Host-blocking: yes, for agreement and a folder. `copy` gives the
  /// request's shards their values, as the first work of the thread; the shards' memory stays until
  /// the end of this object. Throws AgreedError (checkpoint).
  BackgroundSave(SaveRequest request, std::function<void()> copy, comm::ProcessGroup& world,
                 const SaveOptions& options = {});
  /// Ends the thread's work early and waits for it, unless poll() has failed meanwhile and
  /// storage holds the thread up. What is not committed by then is left for collect_garbage().
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  std::int64_t step() const;
  /// Waits until `copy` has ended: what it copied from may change then. Starts the messages of a
  /// save that has any: the first call of each rank belongs to one point of all.
  void await_copy(comm::ProcessGroup& world);
  /// True while the thread works, or messages are under way. Makes their progress.
  bool is_busy() const;
  /// Collective over the group, host-blocking while the rank is busy. Takes the save one part
  /// further: the report once it is committed, else nothing, and the thread of rank 0 is busy
  /// again. Throws AgreedError (checkpoint) on every rank when any has failed; older checkpoints
  /// are untouched then and the half-written folder is removed. A rank that writes slowly is waited
  /// for beyond comm.timeout. Where it stands still it throws Error (checkpoint), others PeerError.
  std::optional<SaveReport> poll(comm::ProcessGroup& world);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::checkpoint
