#pragma once

namespace trireme::train {

/// Notes SIGTERM, SIGUSR1 and SIGINT instead of dying: the step loop asks between steps, agrees
/// with the other ranks, saves and ends with ExitCode::requeue. A second SIGINT ends at once.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The number of the signal that came, or 0.
  static int received();
};

}  // namespace trireme::train
