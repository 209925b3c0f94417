// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/curve.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace trireme::optim {

double Curve::at(std::int64_t step) const {
  if (step <= warmup_steps) {
    return peak * static_cast<double>(step) /
           static_cast<double>(std::max<std::int64_t>(warmup_steps, 1));
  }
  const auto begin =
      kind == CurveKind::wsd ? std::max(warmup_steps, steps - decay_steps) : warmup_steps;
  if (kind == CurveKind::constant || step <= begin) return peak;
  const auto length = std::max<std::int64_t>(steps - begin, 1);
  const double passed =
      std::min(1.0, static_cast<double>(step - begin) / static_cast<double>(length));
  const double share =
      kind == CurveKind::cosine ? 0.5 * (1.0 + std::cos(std::numbers::pi * passed)) : 1.0 - passed;
  return minimum + (peak - minimum) * share;
}

Curve curve_from(const config::Options& options) {
  const auto& optimizer = options.optimizer;
  return {.kind = optimizer.curve,
          .peak = optimizer.learning_rate,
          .minimum = optimizer.min_learning_rate,
          .warmup_steps = optimizer.warmup_steps,
          .decay_steps = options.decay_steps(),
          .steps = options.train.steps};
}

}  // namespace trireme::optim
