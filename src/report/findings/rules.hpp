// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/format.hpp"
#include "trireme/report/run_view.hpp"

#include "report/evidence.hpp"
#include "report/figure_texts.hpp"
#include "report/time_parts.hpp"

#include <cstddef>
#include <optional>
#include <string>

/// Rules of docs/reports.md: each a function from facts to a sentence, which is absent of a run
/// that is well.
namespace trireme::report::findings {

/// The facts that rules look at.
struct Facts {
  const RunView& run;
  /// The record of the newest start: earlier ones had another layout, or another machine.
  telemetry::RunRecord start;
  Figures figures;
  StepFacts step = {};
  PartTimes times = {};
  double step_ms = 0;  ///< of all parts; 0 if the steps are too few to tell

  double share(Part part) const { return step_ms > 0 ? of(times, part) / step_ms : 0; }
  /// "31 % of a step (12.3 of 40.1 ms)".
  std::string share_text(Part part) const {
    return base::format("{:.0f} % of a step ({} of {} ms)", 100 * share(part),
                        three_digits(of(times, part)), three_digits(step_ms));
  }
};

using Verdict = std::optional<std::string>;

/// Steps from which on a run's course is judged.
inline constexpr std::size_t least_steps = 100;

// Time of a step: time_rules.cpp.
Verdict gradients(const Facts& facts);
Verdict tensor(const Facts& facts);
Verdict stages(const Facts& facts);
Verdict bubble(const Facts& facts);
Verdict data(const Facts& facts);
Verdict saves(const Facts& facts);
Verdict evaluations(const Facts& facts);
Verdict micro_batches(const Facts& facts);
Verdict slow_down(const Facts& facts);
Verdict uneven_steps(const Facts& facts);
Verdict processors(const Facts& facts);

// Losses, and steps that were lost: training_rules.cpp.
Verdict skipped(const Facts& facts);
Verdict rising_loss(const Facts& facts);
Verdict overfitting(const Facts& facts);
Verdict repeated(const Facts& facts);

}  // namespace trireme::report::findings
