// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/exit_code.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace trireme::comm {

/// Scope of an MPI call that waits for other ranks and has no deadline of its own. When the limit
/// is reached, the process logs the call, the host, and the state of the ranks of this node, and
/// ends. Nested scopes count as the outermost.
class CallDeadline {
 public:
  explicit CallDeadline(std::string call);
  CallDeadline(const CallDeadline&) = delete;
  CallDeadline& operator=(const CallDeadline&) = delete;
  ~CallDeadline();

  /// Sets the limit of this whole process; before the first call there is none.
  static void set_limit(double seconds);
  /// Sets the exit code of a process that reaches its deadline: that of its run.
  static void set_exit_code(base::ExitCode code);

 private:
  void run();

  std::string call_;
  double limit_seconds_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::optional<std::thread> thread_;
};

}  // namespace trireme::comm
