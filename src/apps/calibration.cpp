// SPDX-License-Identifier: Apache-2.0
#include "apps/calibration.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/config/sources.hpp"
#include "trireme/plan/memory_plan.hpp"
#include "trireme/plan/time_plan.hpp"
#include "trireme/report/run_view.hpp"
#include "trireme/train/trainer.hpp"

#include "apps/step_prediction.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace trireme::apps {
namespace {

using predict::Machine;
using predict::MeasuredStep;
using predict::MeasuredSteps;

/// Parts into which runs are divided: each is held out once.
constexpr std::size_t most_parts = 5;

/// A number of the machine that a factor changes.
struct Calibrated {
  const char* key;
  double (*value)(const Machine& machine);
};
constexpr std::array<Calibrated, predict::factor_names.size()> calibrated{{
    {"share.product", [](const Machine& machine) { return machine.share.product; }},
    {"share.attention", [](const Machine& machine) { return machine.share.attention; }},
    {"share.memory", [](const Machine& machine) { return machine.share.memory; }},
    {"share.link", [](const Machine& machine) { return machine.share.link; }},
    {"node.launch_gap", [](const Machine& machine) { return machine.node.launch_gap; }},
}};

/// Steps of a start by which it is measured: five warm up, and the median is of five or more.
constexpr std::int64_t fewest_steps = 10;

/// Refusal of a run whose newest start has too few steps: the medians would be an earlier one's,
/// whose batch and layout may be others.
base::Status check_steps(const std::filesystem::path& run, const telemetry::RunRecord& record) {
  const auto count = std::count_if(record.steps.begin(), record.steps.end(), [&](const auto& step) {
    return step.restart == record.restart;
  });
  if (count >= fewest_steps) return {};
  return base::usage_failure(
      base::format("run '{}' has {} of its newest start (a calibration needs {}: the first five "
                   "warm up); let it train on, or name another",
                   run.string(), base::counted(count, "step"), fewest_steps));
}

/// Seconds of a steady step of the newest start, in the median.
base::Result<double> step_seconds(const std::filesystem::path& run) {
  const auto views = report::read_runs({&run, 1});
  if (!views) return views.failure();
  if (auto status = check_steps(run, views->front().record); !status.ok()) return status.failure();
  const auto figures = report::figures_of(views->front());
  const double seconds = figures.tokens_per_step / figures.tokens_per_second;
  if (std::isfinite(seconds) && seconds > 0) return seconds;
  return base::usage_failure(
      base::format("run '{}' has no steps to calibrate by (the record of a start, and steps behind "
                   "it, are needed); name one that has trained",
                   run.string()));
}

base::Failure refused(const std::filesystem::path& run, const base::Failure& why) {
  return base::usage_failure(base::format("run '{}': {}", run.string(), why.text));
}

base::Result<MeasuredStep> measured_step(const std::filesystem::path& run, const Machine& machine) {
  const auto seconds = step_seconds(run);
  if (!seconds) return seconds.failure();
  const auto config = config::resolve_as_recorded({.files = {run / config::resolved_file_name},
                                                   .environment = {},
                                                   .settings = {},
                                                   .launched = {}});
  if (!config) return config.failure();
  if (auto status = check_backend(*config, machine); !status.ok()) {
    return refused(run, status.failure());
  }
  const auto model = train::model_from(*config);
  if (!model) return model.failure();
  const auto ranks = static_cast<int>(config::least_world(*config));
  const auto memory = plan::plan_memory(*config, *model, ranks, {.only = base::Rank{0}});
  if (!memory) return memory.failure();
  if (auto status = plan::check_predicted(memory->options); !status.ok()) {
    return refused(run, status.failure());
  }
  MeasuredStep step{machine, plan::workload_of(memory->options, machine), *seconds};
  const auto standing = predict::predict_step(step.machine, step.workload);
  if (!standing) return standing.failure();
  return step;
}

PredictionErrors errors_of(std::vector<double> errors) {
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return {*middle, *std::max_element(errors.begin(), errors.end())};
}

double error_of(const MeasuredStep& step, const predict::Factors& factors) {
  return std::abs(predict::predicted_seconds(step, factors) / step.seconds - 1);
}

void hold_out(const MeasuredSteps& steps, Calibration& calibration) {
  const auto parts = std::min(most_parts, steps.size());
  std::vector<double> before;
  std::vector<double> after;
  for (std::size_t part = 0; part < parts; ++part) {
    MeasuredSteps fitted;
    for (std::size_t index = 0; index < steps.size(); ++index) {
      if (index % parts != part) fitted.push_back(steps[index]);
    }
    const auto factors = predict::fit(fitted, predict::determined_by(fitted));
    for (std::size_t index = part; index < steps.size(); index += parts) {
      before.push_back(error_of(*steps[index], predict::no_change));
      after.push_back(error_of(*steps[index], factors));
    }
  }
  calibration.held_out_before = errors_of(std::move(before));
  calibration.held_out_after = errors_of(std::move(after));
}

Machine calibrated_machine(const MeasuredStep& of, const Calibration& calibration) {
  auto machine = of.machine;
  const auto& factors = calibration.factors;
  machine.share.product *= factors[0];
  machine.share.attention *= factors[1];
  machine.share.memory *= factors[2];
  machine.share.link *= factors[3];
  if (calibration.determined[4]) {
    machine.node.launch_gap = of.workload.program.launch_gap * factors[4];
  }
  const auto source = base::format("calibrated by trireme plan --calibrate on {}",
                                   base::counted(static_cast<int>(calibration.runs), "run"));
  for (std::size_t factor = 0; factor < calibrated.size(); ++factor) {
    if (calibration.determined[factor]) machine.sources[calibrated[factor].key] = source;
  }
  return machine;
}

std::string percent(const PredictionErrors& errors) {
  return base::format("{:.1f} % in the median, {:.1f} % at worst", 100 * errors.median,
                      100 * errors.worst);
}

}  // namespace

base::Result<Calibration> calibrate(const std::vector<std::filesystem::path>& runs,
                                    const std::filesystem::path& machine) {
  const auto described = predict::read_machine(machine);
  if (!described) return described.failure();
  if (runs.size() < 2) {
    return base::usage_failure(
        "--calibrate has one run (factors are tried on runs that they were not fitted on); name "
        "two or more, of different layouts or models");
  }
  std::vector<MeasuredStep> measured;
  for (const auto& run : runs) {
    auto step = measured_step(run, *described);
    if (!step) return step.failure();
    measured.push_back(*std::move(step));
  }
  MeasuredSteps steps;
  for (const auto& step : measured) steps.push_back(&step);
  Calibration calibration;
  calibration.runs = steps.size();
  calibration.determined = predict::determined_by(steps);
  calibration.factors = predict::fit(steps, calibration.determined);
  calibration.before = *described;
  // The gap of a file that has none is the program's.
  calibration.before.node.launch_gap = measured.front().workload.program.launch_gap;
  calibration.after = calibrated_machine(measured.front(), calibration);
  hold_out(steps, calibration);
  return calibration;
}

std::string text(const Calibration& calibration) {
  auto text = base::format("{} on {}\n", calibration.before.name,
                           base::counted(static_cast<int>(calibration.runs), "run"));
  for (std::size_t factor = 0; factor < calibrated.size(); ++factor) {
    const auto& row = calibrated[factor];
    const double before = row.value(calibration.before);
    text += calibration.determined[factor]
                ? base::format("{:<16} {:.4g} -> {:.4g}\n", row.key, before,
                               row.value(calibration.after))
                : base::format("{:<16} {:.4g} stays: these runs do not determine it\n", row.key,
                               before);
  }
  return text + base::format("runs held out are off by {}; with the file as it is by {}\n",
                             percent(calibration.held_out_after),
                             percent(calibration.held_out_before));
}

base::Json to_json(const Calibration& calibration) {
  base::Json json{{"machine", calibration.before.name}, {"runs", calibration.runs}};
  for (std::size_t factor = 0; factor < calibrated.size(); ++factor) {
    const auto& row = calibrated[factor];
    json["factors"][row.key] = {
        {"determined", calibration.determined[factor]},
        {"old", row.value(calibration.before)},
        {"new", calibration.determined[factor] ? row.value(calibration.after)
                                               : row.value(calibration.before)}};
  }
  json["held_out"] = {{"median", calibration.held_out_after.median},
                      {"worst", calibration.held_out_after.worst},
                      {"median_before", calibration.held_out_before.median},
                      {"worst_before", calibration.held_out_before.worst}};
  return json;
}

}  // namespace trireme::apps
