// SPDX-License-Identifier: Apache-2.0
#include "trireme/report/run_view.hpp"

#include "steady.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::report {
namespace {

using telemetry::absent;
using telemetry::StepLine;

/// Facts of the newest start, and a peak that was corrected since.
void use_events(const telemetry::RunRecord& record, Figures& figures) {
  for (const auto& event : record.events) {
    if (event.name == "start") {
      figures.parameters = telemetry::number_of(event.line, "parameters");
      figures.tokens_per_step = telemetry::number_of(event.line, "tokens_per_step");
      const auto source = event.line.find("peak_source");
      if (source != event.line.end() && source->is_string()) figures.peak_source = *source;
    }
    if (event.name == "start" || event.name == "peak") {
      figures.peak_flops = telemetry::number_of(event.line, "peak_flops");
    }
  }
}

}  // namespace

Figures figures_of(const RunView& run) {
  Figures figures;
  const auto& steps = run.record.steps;
  figures.planned_steps = run.number("train.steps", 0);
  figures.starts = run.record.start_count;
  use_events(run.record, figures);
  figures.step = run.record.step;
  if (!steps.empty()) {
    figures.tokens = steps.back().tokens;
    figures.epochs = steps.back().epochs;
    double sum = 0;
    double count = 0;
    for (auto at = steps.size() - std::min(steps.size(), Figures::smoothed_steps);
         at < steps.size(); ++at) {
      if (std::isnan(steps[at].loss)) continue;
      sum += steps[at].loss;
      ++count;
    }
    if (count > 0) figures.loss = sum / count;
    double milliseconds = 0;
    for (const auto& step : steps) milliseconds += std::isnan(step.step_ms) ? 0 : step.step_ms;
    figures.step_seconds = milliseconds / 1e3;
  }
  for (const auto& evaluation : run.record.evaluations) {
    figures.held_out_loss = evaluation.loss;
    if (evaluation.loss < figures.best_held_out_loss || std::isnan(figures.best_held_out_loss)) {
      figures.best_held_out_loss = evaluation.loss;
      figures.best_step = evaluation.step;
    }
  }
  figures.tokens_per_second = median(steady_numbers(run.record, &StepLine::tokens_per_second));
  figures.mfu = median(steady_numbers(run.record, &StepLine::mfu));
  return figures;
}

}  // namespace trireme::report
