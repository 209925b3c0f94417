// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace trireme::comm {

/// Work of another thread of this rank that its group has to wait for, such as files.
struct LocalWork {
  /// Waits so long at most; true once the work has ended.
  std::function<bool(std::chrono::milliseconds)> ended;
  /// Number that changes whenever the work has moved.
  std::function<std::uint64_t()> progress;
  /// The work that goes on, after "rank 3 is still": "writing step 20".
  std::string text;
  /// Longest time without progress.
  std::chrono::milliseconds limit;
};

/// Collective over the group. Host-blocking: yes. Returns once the work of every member has ended.
/// Members show each other twice a second that they are there, so that the time that work takes is
/// not held against comm.timeout (of a second or more). Where work has not moved for `limit`, the
/// rank that it belongs to throws Error (checkpoint), and the others PeerError with its name.
void await_work(ProcessGroup& group, const LocalWork& work);

}  // namespace trireme::comm
