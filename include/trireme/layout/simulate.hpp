// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/schedule.hpp"

#include <span>
#include <string>
#include <vector>

namespace trireme::layout {

/// Durations of one chunk's action in any one unit; a message between two stages takes `message`.
/// With v virtual stages a chunk is 1/v of a stage: divide when comparing schedules.
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

/// Completeness of a step's lists: every stage has its list; each micro-batch of each chunk has one
/// forward and one backward (whole, or as input and weight gradient); and the gradients of a chunk
/// are computed in the order of the micro-batches. The failure names the action.
base::Status check(const Schedule& schedule);

/// Runs the action lists against their dependencies: a forward needs the output of the chunk
/// before it; a backward its own forward and the gradient from the chunk after it, which leaves
/// at the end of backward or backward_input; backward_weight its backward_input. Sends are buffered
/// and take no time of the stage. Lists that check() refuses are refused; lists that cannot finish
/// are a failure that names the stages, and the action that each waits in and for.
base::Result<Simulation> simulate(const Schedule& schedule, const Costs& costs);
/// The same with costs of each position of the model; all messages take `message`.
base::Result<Simulation> simulate(const Schedule& schedule, std::span<const Costs> costs,
                                  double message);

/// Picture of a simulated schedule: a line for each stage, time to the right, with the
/// micro-batches' numbers, the bubble, the largest number of live micro-batches, and a legend. At
/// most `columns` wide where the names of stages leave room for that; UTF-8.
std::string timeline_text(const Schedule& schedule, const Simulation& simulation, int columns);
/// One self-contained SVG document; the same bytes for the same schedule on every machine.
std::string timeline_svg(const Schedule& schedule, const Simulation& simulation);

}  // namespace trireme::layout
