// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/options.hpp"

#include <cstdint>

namespace trireme::optim {

using CurveKind = config::LearningRateCurve;

/// The learning rate over time: a linear warm-up, then one of
/// constant; cosine (Loshchilov & Hutter 2017) or linear from peak to minimum at the last step;
/// wsd (Hu et al. 2024): stable at the peak, then linear to the minimum in the last
/// `decay_steps`.
struct Curve {
  CurveKind kind = CurveKind::constant;
  double peak = 0;
  double minimum = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t decay_steps = 0;
  std::int64_t steps = 0;

  /// Rate of update `step`, counted from 1.
  double at(std::int64_t step) const;
  /// Whether the rate falls towards its end.
  bool falls() const { return kind != CurveKind::constant && minimum < peak; }
};

Curve curve_from(const config::Options& options);

}  // namespace trireme::optim
