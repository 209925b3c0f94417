#pragma once

#include "trireme/layout/schedule.hpp"

#include <string>
#include <vector>

namespace trireme::layout {

/// Durations in any one unit; a message takes `message`.
struct Costs {
  double forward = 1.0;
  double backward_input = 1.0;
  double backward_weight = 1.0;
  double message = 0.0;
};

struct TimedAction {
  Action action;
  double begin;
  double end;
};

struct Simulation {
  std::vector<std::vector<TimedAction>> timeline;  ///< [stage]
  double makespan = 0;
  /// Idle time divided by makespan, over all stages.
  double bubble_fraction = 0;
  /// peak_live[stage][virtual_stage]: micro-batches whose activations are held at once.
  std::vector<std::vector<int>> peak_live;
  /// peak_live_total[stage]: over all chunks of the stage together.
  std::vector<int> peak_live_total;
};

/// Runs the action lists against their dependencies. A list that cannot finish is a failure that
/// names the stages, and the action that each waits in.
base::Result<Simulation> simulate(const Schedule& schedule, const Costs& costs);

/// Pictures of a simulated schedule.
std::string timeline_text(const Schedule& schedule, const Simulation& simulation, int columns);
std::string timeline_svg(const Schedule& schedule, const Simulation& simulation);

}  // namespace trireme::layout
