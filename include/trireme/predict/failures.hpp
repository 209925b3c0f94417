// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Time that failures of a job's nodes cost, and the interval between saves that costs least.
namespace trireme::predict {

/// Seconds of a save.
struct SaveTimes {
  /// Time in which training stands still.
  double stall = 0;
  /// Time from then on until the save counts, while training goes on; 0 where training stands still
  /// for all of it.
  double write = 0;
};

/// Seconds of a job's failures.
struct FailureTimes {
  /// Mean time between failures of any node.
  double between = 0;
  /// From a failure to the first step again.
  double restart = 0;
};

/// Seconds of training between two saves by Daly (2006, "A higher order estimate of the optimum
/// checkpoint interval", eq. 37), but never less than a save is written for: writing beside
/// training loses as much whatever the interval.
double best_interval(const SaveTimes& save, const FailureTimes& failures);

/// Part of the time that is training and not done again.
double effective_share(double interval, const SaveTimes& save, const FailureTimes& failures);

}  // namespace trireme::predict
