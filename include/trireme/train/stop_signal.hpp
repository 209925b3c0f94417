// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace trireme::train {

/// Records SIGTERM, SIGUSR1 and SIGINT instead of ending the process: the step loop reads the
/// record between steps, agrees with the other ranks, saves and ends with ExitCode::requeue. A
/// second SIGINT ends the process at once.
///
/// A thread of its own receives the signals, which are blocked in the thread that makes this object
/// and in all that it starts later: no handler may ever run on a stack that computes
/// (docs/decisions/0030). So make it before any thread is started.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The number of the signal that came, or 0.
  static int received();

 private:
  struct Watch;
  std::unique_ptr<Watch> watch_;
};

}  // namespace trireme::train
