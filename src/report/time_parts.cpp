// SPDX-License-Identifier: Apache-2.0
#include "time_parts.hpp"

#include "trireme/telemetry/predicted_step.hpp"

#include "steady.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

namespace trireme::report {
namespace {

double or_zero(double milliseconds) {
  return std::isfinite(milliseconds) && milliseconds > 0 ? milliseconds : 0;
}

}  // namespace

const PartText& text_of(Part part) {
  using telemetry::StepLine;
  static constexpr std::array<PartText, part_count> texts{{
      {"compute", "what is left of the step"},
      {"tensor-parallel", "collectives of activations (tensor_comm_ms)", &StepLine::tensor_comm_ms},
      {"gradient reduction", "exposed reductions of gradients (exposed_comm_ms)",
       &StepLine::exposed_comm_ms},
      {"bubble", "waiting for messages of other stages (bubble_ms)", &StepLine::bubble_ms},
      {"data", "reading samples (data_ms)", &StepLine::data_ms},
      {"optimizer", "the update (optimizer_ms)", &StepLine::optimizer_ms},
      {"saves", "training stands still for a checkpoint (stall_ms)"},
      {"evaluation", "held-out loss and samples between two steps (seconds)"},
      {"parameters", "waiting in forward for what other ranks have updated (parameters_ms)",
       &StepLine::parameters_ms},
  }};
  return texts[static_cast<std::size_t>(part)];
}

double sum_of(const PartTimes& times) {
  return std::accumulate(times.begin(), times.end(), 0.0);
}

std::vector<PartTimes> part_times(const telemetry::RunRecord& record) {
  std::map<std::pair<std::int64_t, std::int64_t>, double> stalls;  // by step and restart
  for (const auto& save : record.saves) stalls[{save.step, save.restart}] += or_zero(save.stall_ms);
  std::map<std::int64_t, double> evaluations;
  for (const auto& each : record.evaluations) {
    evaluations[each.step] = (or_zero(each.seconds) + or_zero(each.sample_seconds)) * 1e3;
  }
  std::vector<PartTimes> all;
  all.reserve(record.steps.size());
  for (const auto& step : record.steps) {
    PartTimes times{};
    for (std::size_t part = 0; part < part_count; ++part) {
      const auto number = text_of(static_cast<Part>(part)).number;
      if (number != nullptr) times[part] = or_zero(step.*number);
    }
    of(times, Part::compute) = std::max(0.0, or_zero(step.step_ms) - sum_of(times));
    if (const auto stall = stalls.find({step.step, step.restart}); stall != stalls.end()) {
      of(times, Part::save) = stall->second;
    }
    if (const auto found = evaluations.find(step.step); found != evaluations.end()) {
      of(times, Part::evaluation) = found->second;
    }
    all.push_back(times);
  }
  return all;
}

std::vector<double> stage_waits(const telemetry::RunRecord& record) {
  std::vector<double> waits;
  double step_ms = 0;
  for (const auto index : steady_indices(record)) {
    const auto& step = record.steps[index];
    if (step.stage_bubble_ms.size() < 2 || !std::isfinite(step.step_ms)) continue;
    waits.resize(step.stage_bubble_ms.size(), 0.0);
    std::transform(waits.begin(), waits.end(), step.stage_bubble_ms.begin(), waits.begin(),
                   std::plus<>());
    step_ms += step.step_ms;
  }
  for (auto& wait : waits) wait /= std::max(step_ms, 1e-9);
  return waits;
}

PartTimes mean_part_times(const telemetry::RunRecord& record) {
  const auto all = part_times(record);
  const auto steady = steady_indices(record);
  PartTimes mean{};
  for (const auto index : steady) {
    for (std::size_t part = 0; part < part_count; ++part) mean[part] += all[index][part];
  }
  for (auto& each : mean) each /= static_cast<double>(std::max<std::size_t>(steady.size(), 1));
  return mean;
}

std::optional<PredictedParts> predicted_part_times(const telemetry::RunRecord& record) {
  const auto predicted = telemetry::predicted_step_of(record);
  if (!predicted) return std::nullopt;
  const auto steady = steady_indices(record);
  PredictedParts parts{predicted->machine, {}};
  double told = 0;
  for (std::size_t part = 0; part < part_count; ++part) {
    const auto number = text_of(static_cast<Part>(part)).number;
    if (number == nullptr) continue;
    for (const auto& row : telemetry::predicted_numbers) {
      const bool is_measured = std::any_of(steady.begin(), steady.end(), [&](std::size_t index) {
        return std::isfinite(record.steps[index].*number);
      });
      if (row.measured != number || !is_measured) continue;
      parts.times[part] = (*predicted).*row.predicted;
      told += parts.times[part];
    }
  }
  of(parts.times, Part::compute) = std::max(0.0, predicted->step_ms - told);
  return parts;
}

}  // namespace trireme::report
