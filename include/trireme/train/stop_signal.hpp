// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace trireme::train {

/// Notes SIGTERM, SIGUSR1 and SIGINT instead of dying: the step loop asks between steps, agrees
/// with the other ranks, saves and ends with ExitCode::requeue. A second SIGINT ends at once.
///
/// A thread of its own takes the signals, which are blocked in the thread that makes this object
/// and in all that it starts from then on: no handler may ever run on a stack that computes
/// (docs/decisions/0030). So make it before anything starts threads.
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
