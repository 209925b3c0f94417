// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace trireme::record {

/// Content of RUN/lock: the process that may change the run.
struct RunHolder {
  /// Slurm's job and step, "12.0"; empty outside of one.
  std::string job;
  int process = 0;
  std::string host;
  /// UTC.
  std::string since;
  /// Boot id of the running kernel: locks of another kernel's processes may be invisible to this
  /// one.
  std::string boot;
  /// Unique mark of this holding.
  std::string token;
};

/// Holder of the run at the moment: its lock is seen, or its heartbeat, where this node may not see
/// the locks of others. Changes nothing, and does not wait.
std::optional<RunHolder> living_holder(const std::filesystem::path& run);

/// RUN/lock: one process at a time changes a run directory. An open-file-description lock holds it
/// where the file system has such locks for all nodes; where it has none, or only for its own node,
/// the file's time of change is a heartbeat, which another start observes before it takes over.
class RunLock {
 public:
  enum class Way {
    lock_and_heartbeat,
    heartbeat  ///< as on a file system without locks
  };
  struct Options {
    /// Interval of the heartbeat; a holder that misses three is dead, unless its lock is seen.
    std::chrono::milliseconds heartbeat{10'000};
    /// Time to wait for a process that is just ending.
    std::chrono::milliseconds patience{1'000};
    /// Time to wait for a holder that is an earlier step of the same job (which was requeued).
    std::chrono::milliseconds requeue_patience{120'000};
    Way way = Way::lock_and_heartbeat;
  };

  /// Makes the run's folder when it is missing, and waits as the options say. `job` is
  /// Identity::job. Failures: another process, named, holds it (launch); storage refuses
  /// (checkpoint).
  static base::Result<RunLock> take(const std::filesystem::path& run, const std::string& job,
                                    const Options& options);
  static base::Result<RunLock> take(const std::filesystem::path& run, const std::string& job) {
    return take(run, job, Options());
  }

  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  RunLock(RunLock&&) noexcept;
  RunLock& operator=(RunLock&&) noexcept;
  /// Releases the run; the empty file stays.
  ~RunLock();

  /// True if the file was removed or taken over: nothing may be written any more. Updated with each
  /// heartbeat; does not block.
  bool is_lost() const;
  /// Current state of is_lost(), read from the storage: for operations that cannot be undone.
  /// Blocks as the storage does.
  bool is_lost_by_now() const;

 private:
  class Holding;
  explicit RunLock(std::unique_ptr<Holding> holding);
  std::unique_ptr<Holding> holding_;
};

}  // namespace trireme::record
