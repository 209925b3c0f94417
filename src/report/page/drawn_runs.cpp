// SPDX-License-Identifier: Apache-2.0
#include "drawn_runs.hpp"

#include <algorithm>
#include <array>

namespace trireme::report {
namespace {

using telemetry::StepLine;

constexpr std::array<Curve, 6> curves{{
    {"loss", "Training loss", "nats per token", &StepLine::loss},
    {"held_out", "Held-out loss", "nats per token", nullptr, 1, false},
    {"norm", "Gradient norm", "before clipping", &StepLine::grad_norm, 1, true, true},
    {"rate", "Learning rate", "of each update", &StepLine::learning_rate, 1, false},
    {"speed", "Throughput", "tokens per second, all ranks", &StepLine::tokens_per_second, 1, true,
     true},
    {"mfu", "MFU", "% of the peak", &StepLine::mfu, 100, true, true},
}};

double hours_of(const StepLine& step) {
  if (step.time_ms == 0) return telemetry::absent;
  return static_cast<double>(step.elapsed_ms) / 3.6e6;
}

void add(Abscissas& at, const StepLine& first, const StepLine& last) {
  const auto middle = [](double one, double other) { return (one + other) / 2; };
  at.step.push_back(middle(static_cast<double>(first.step), static_cast<double>(last.step)));
  at.tokens.push_back(middle(first.tokens, last.tokens));
  at.hours.push_back(middle(hours_of(first), hours_of(last)));
}

void draw_curves(DrawnRun& drawn) {
  const auto& steps = drawn.run->record.steps;
  std::vector<double> values(steps.size());
  for (const auto& curve : curves) {
    drawn.curves.emplace_back();
    if (curve.number == nullptr) continue;
    std::transform(steps.begin(), steps.end(), values.begin(),
                   [&curve](const StepLine& step) { return step.*curve.number * curve.factor; });
    drawn.curves.back() = ranges_of(values, drawn.buckets);
  }
}

void draw_parts(DrawnRun& drawn) {
  const auto& steps = drawn.run->record.steps;
  const auto times = part_times(drawn.run->record);
  for (const auto& bucket : buckets_of(steps.size(), most_area_columns)) {
    add(drawn.parts_at, steps[bucket.begin], steps[bucket.end - 1]);
    PartTimes sum{};
    for (auto index = bucket.begin; index < bucket.end; ++index) {
      for (std::size_t part = 0; part < part_count; ++part) sum[part] += times[index][part];
    }
    const auto count = static_cast<double>(bucket.end - bucket.begin);
    for (std::size_t part = 0; part < part_count; ++part) {
      drawn.parts[part].push_back(sum[part] / count);
    }
  }
}

/// Step of an evaluation; without tokens and time if its line is missing.
StepLine step_of(const telemetry::EvaluationLine& evaluation, const telemetry::RunRecord& record) {
  const auto& steps = record.steps;
  const auto found = std::lower_bound(
      steps.begin(), steps.end(), evaluation.step,
      [](const StepLine& line, std::int64_t wanted) { return line.step < wanted; });
  if (found != steps.end() && found->step == evaluation.step) return *found;
  StepLine step;
  step.step = evaluation.step;
  return step;
}

void draw_held_out(DrawnRun& drawn) {
  const auto& record = drawn.run->record;
  std::vector<double> losses;
  for (const auto& evaluation : record.evaluations) losses.push_back(evaluation.loss);
  const auto buckets = buckets_of(losses.size(), most_columns);
  for (const auto& range : ranges_of(losses, buckets)) drawn.held_out.push_back(range.mean);
  for (const auto& bucket : buckets) {
    add(drawn.held_out_at, step_of(record.evaluations[bucket.begin], record),
        step_of(record.evaluations[bucket.end - 1], record));
  }
}

DrawnRun draw_one(const RunView& run) {
  DrawnRun drawn;
  drawn.run = &run;
  const auto& steps = run.record.steps;
  drawn.buckets = buckets_of(steps.size(), most_columns);
  for (std::size_t column = 0; column < drawn.buckets.size(); ++column) {
    const auto& bucket = drawn.buckets[column];
    add(drawn.at, steps[bucket.begin], steps[bucket.end - 1]);
    const bool is_later_start = column > 0 && steps[bucket.end - 1].restart >
                                                  steps[drawn.buckets[column - 1].end - 1].restart;
    if (is_later_start) drawn.starts.push_back(column);
    const bool has_next = bucket.end < steps.size();
    if (has_next && steps[bucket.end].step > steps[bucket.end - 1].step + 1) {
      drawn.breaks.push_back(column);
    }
  }
  draw_curves(drawn);
  draw_parts(drawn);
  draw_held_out(drawn);
  return drawn;
}

}  // namespace

std::span<const Curve> all_curves() {
  return curves;
}

std::vector<DrawnRun> draw(std::span<const RunView> runs) {
  std::vector<DrawnRun> drawn;
  for (const auto& run : runs) drawn.push_back(draw_one(run));
  return drawn;
}

}  // namespace trireme::report
