// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drawn_runs.hpp"
#include "html.hpp"

namespace trireme::report {

/// Values that a picture shows.
struct Domain {
  double low = 0;
  double high = 1;
  /// Lowest value above zero: where a logarithmic axis begins. NaN if there is none.
  double least_positive = telemetry::absent;
  bool is_empty = true;
};
Domain domain_of(const Curve& curve, std::span<const DrawnRun> runs);

/// A figure of a curve over the steps of all runs; nothing if no run has a value of it.
Html curve_figure(const Curve& curve, std::span<const DrawnRun> runs);

/// Figure of the parts of a run's step time above each other, over its steps.
Html parts_figure(const DrawnRun& run, std::size_t index);

}  // namespace trireme::report
