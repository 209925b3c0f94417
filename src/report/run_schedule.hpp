// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/mesh.hpp"
#include "trireme/layout/simulate.hpp"
#include "trireme/report/run_view.hpp"

#include <optional>

namespace trireme::report {

/// The pipeline schedule of a run and its simulation: a backward takes as long as two forwards,
/// stages are equal, and messages take no time.
struct RunSchedule {
  layout::Schedule schedule;
  layout::Simulation simulation;
  /// The same where the halves of backward are actions of their own and their lengths differ most:
  /// gradients of inputs come with a recomputation of whole layers.
  double largest_bubble_fraction;
};

/// Micro-batches of a data-parallel rank in a step; 0 if the configuration does not tell.
std::int64_t micro_batches_of(const RunView& run);

/// Nothing for runs of one stage, and where the configuration does not tell the schedule or it is
/// too long to be drawn.
std::optional<RunSchedule> schedule_of(const RunView& run);

/// Nothing if the configuration does not tell it.
std::optional<layout::Mesh> mesh_of(const RunView& run);

}  // namespace trireme::report
