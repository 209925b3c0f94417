// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/exit_code.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace trireme::comm {

/// While one lives, a call of MPI's is under way that waits for other ranks and has no deadline of
/// its own. When the limit is reached, the process says which call it was, on which host, and what
/// has become of the ranks of this node, and ends. Nested ones count as the outermost.
class CallDeadline {
 public:
  explicit CallDeadline(std::string call);
  CallDeadline(const CallDeadline&) = delete;
  CallDeadline& operator=(const CallDeadline&) = delete;
  ~CallDeadline();

  /// For all of this process from now on, as MPI is; before the first, there is no limit.
  static void set_limit(double seconds);
  /// How the process ends at a deadline from now on: as its run has ended.
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
