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

Curve curve_from(const config::Config& config) {
  Curve curve;
  const auto& kind = config.text("optimizer.curve");
  curve.kind = kind == "cosine"   ? CurveKind::cosine
               : kind == "linear" ? CurveKind::linear
               : kind == "wsd"    ? CurveKind::wsd
                                  : CurveKind::constant;
  curve.peak = config.real("optimizer.learning_rate");
  curve.minimum = config.real("optimizer.min_learning_rate");
  curve.warmup_steps = config.integer("optimizer.warmup_steps");
  curve.steps = config.integer("train.steps");
  // A tenth of the run is what the paper found enough.
  curve.decay_steps = config.integer_or("optimizer.decay_steps", (curve.steps + 9) / 10);
  return curve;
}

}  // namespace trireme::optim
