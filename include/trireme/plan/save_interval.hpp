// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/plan/run_estimate.hpp"
#include "trireme/predict/failures.hpp"
#include "trireme/predict/machine.hpp"

#include <optional>

/// Failures and saves by a machine's file, and the interval between saves that follows.
namespace trireme::plan {

/// Seconds between two saves by the clock, at least and at most: a file system has others to serve,
/// and not only nodes fail.
inline constexpr double shortest_save_interval = 60;
inline constexpr double longest_save_interval = 6 * 3600.0;

/// Nodes of a machine with GPUs that so many ranks fill; of one whose cores compute, one.
int nodes_of(const predict::Machine& machine, int ranks);

/// Failures of so many nodes; nothing where the machine's file does not say how often one fails.
std::optional<predict::FailureTimes> failure_times(const predict::Machine& machine, Tenure tenure,
                                                   int nodes);

/// Times of a save on so many nodes; nothing where the machine's file has no rate of its disk.
std::optional<predict::SaveTimes> save_times(const predict::Machine& machine, const RunSize& run,
                                             int nodes);

/// Seconds of training between two saves with which failures cost least, within the bounds above;
/// never less than a save is written for.
double save_interval(const predict::SaveTimes& save, const predict::FailureTimes& failures);

}  // namespace trireme::plan
