// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/predict/machine.hpp"
#include "trireme/predict/workload.hpp"

#include <vector>

namespace trireme::predict {

/// Stretch of a step in which a rank's computation, its link, or its collectives are busy; seconds
/// from the step's begin.
struct TimelineSpan {
  enum class Kind {
    forward,
    backward,  ///< whole, or the half that computes the input's gradient
    weight,    ///< the half that computes the weights' gradients
    update,
    data,    ///< a collective of data-parallel ranks
    message  ///< to another stage
  };
  Kind kind = Kind::forward;
  double begin = 0;
  double end = 0;
  /// -1: of no micro-batch.
  int micro_batch = -1;
  int virtual_stage = 0;
  /// Part of a computation in which it waits for collectives of tensor-parallel ranks.
  double tensor = 0;
};

/// A step as it passes on one rank, and on those that are equal to it.
struct TimelineRow {
  int stage = 0;
  int rank = 0;
  /// Ranks, this one included.
  int alike = 1;
  /// In ascending order of their ends.
  std::vector<TimelineSpan> spans = {};
};

struct Timeline {
  double seconds = 0;
  /// In ascending order of stages, then ranks.
  std::vector<TimelineRow> rows;
};

/// The step that predict_step() predicts, as it passes. Refuses what that refuses.
base::Result<Timeline> step_timeline(const Machine& machine, const Workload& workload);

}  // namespace trireme::predict
