// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

namespace trireme::runtime {

/// What RUN/lock says of the process that may change the run.
struct RunHolder {
  /// Slurm's job and step, "12.0"; empty outside of one.
  std::string job;
  int process = 0;
  std::string host;
  /// UTC.
  std::string since;
  /// Of the running kernel: locks of another kernel's processes may be unknown to this one.
  std::string boot;
  /// Of this holding alone.
  std::string token;
};

/// RUN/lock: one process at a time changes a run directory. An open-file-description lock holds
/// it where the file system has such locks for all nodes; where it has none, or only for its own
/// node, the file's time of change is a heartbeat that another start watches before it takes over.
class RunLock {
 public:
  enum class Way {
    lock_and_heartbeat,
    heartbeat  ///< as on a file system without locks
  };
  struct Options {
    /// A holder that has been still for three of them is dead, unless its lock is seen.
    std::chrono::milliseconds heartbeat{10'000};
    /// How long a process that is just ending is waited for.
    std::chrono::milliseconds patience{1'000};
    /// The same, when it is an earlier step of this very job (which was requeued).
    std::chrono::milliseconds requeue_patience{120'000};
    Way way = Way::lock_and_heartbeat;
  };

  /// Makes the run's folder when it is missing, and waits as the options say. `job` is
  /// Identity::job. Failures: somebody else holds it, named (launch); storage refuses (checkpoint).
  static base::Result<RunLock> take(const std::filesystem::path& run, const std::string& job,
                                    const Options& options);
  static base::Result<RunLock> take(const std::filesystem::path& run, const std::string& job) {
    return take(run, job, Options());
  }

  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  RunLock(RunLock&&) noexcept;
  RunLock& operator=(RunLock&&) noexcept;
  /// Gives the run back; the empty file stays.
  ~RunLock();

  /// Somebody removed or took the file over: nothing may be written any more. Looked at with each
  /// heartbeat; does not block.
  bool is_lost() const;
  /// The same, looked at now: for what cannot be taken back. Blocks as the storage does.
  bool is_lost_by_now() const;

 private:
  class Holding;
  explicit RunLock(std::unique_ptr<Holding> holding);
  std::unique_ptr<Holding> holding_;
};

}  // namespace trireme::runtime
