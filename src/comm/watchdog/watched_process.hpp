// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"

#include <string>

namespace trireme::comm {

/// Another process of this host, identified reliably although the system reuses numbers: by a
/// descriptor (pidfd_open, Linux 5.3), or where that is refused by the time of its start.
class WatchedProcess {
 public:
  enum class Life {
    running,
    ended,
    unknown  ///< it cannot be seen: another process's namespace, no /proc
  };
  enum class Means { descriptor, start_time, none };

  WatchedProcess() = default;
  /// `first` is tried first.
  explicit WatchedProcess(int number, Means first = Means::descriptor);

  Life life() const;
  /// Sends SIGKILL to this process and no other.
  void kill() const;
  Means means() const;

 private:
  int number_ = -1;
  base::File descriptor_;
  /// Field 22 of /proc/NUMBER/stat; empty where unknown.
  std::string start_time_;
};

/// The state letter of proc(5), '?' when the process cannot be seen.
char process_state(int number);

}  // namespace trireme::comm
