// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/schedule.hpp"
#include "trireme/predict/step.hpp"

#include "predict/timeline/recorder.hpp"
#include "stage_plan.hpp"

#include <cstdint>
#include <functional>
#include <vector>

/// The step's events. Private to the room.
namespace trireme::predict {

/// A rank that is simulated, for itself and for all that are equal to it.
struct SimulatedRank {
  int stage = 0;
  int rank = 0;
  /// Ranks that begin each piece together, whose collectives are within it.
  int team = 0;
  /// Ranks that exchange gradients and parameters.
  int data_group = 0;
  int node = 0;
  /// Simulated ranks that run the neighbouring stages' part of its pipeline.
  int before = -1;
  int after = -1;
};

struct ReplayInput {
  const layout::Schedule& schedule;
  const std::vector<StagePlan>& plans;
  std::vector<SimulatedRank> ranks = {};
  int teams = 0;
  int data_groups = 0;
  /// Time of a message between two ranks of the mesh.
  std::function<Time(int, int)> message = {};
  bool overlaps_messages = true;
  /// Thousandths of a running collective of data-parallel ranks by which computation beside it
  /// takes longer.
  std::int64_t contention = 0;
  /// Cores of a node that ranks share, each of which runs one rank at a time; 0: every rank has its
  /// own.
  int cores = 0;
  Recorder recorder = Recorder();

  /// Time that computation loses by collectives that run beside it for so long.
  Time lost_beside(Time collectives) const { return collectives * contention / 1000; }
};

/// Runs the step by its events, earliest first, and returns the parts of the rank that computes
/// longest.
StepPrediction replay(const ReplayInput& input);

}  // namespace trireme::predict
