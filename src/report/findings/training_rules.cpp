// SPDX-License-Identifier: Apache-2.0
// Findings on losses, and on steps that were lost.
#include "trireme/base/format.hpp"

#include "report/findings/rules.hpp"
#include "report/steady.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::report::findings {
namespace {

using base::format;

// Thresholds, as docs/reports.md has them.
constexpr std::size_t loss_window = 50;
constexpr double risen_loss = 1.10;
constexpr double risen_held_out = 1.02;
constexpr std::size_t evaluations_after_best = 3;
constexpr double much_repeated = 0.10;
constexpr std::int64_t few_repeated = 10;

}  // namespace

Verdict skipped(const Facts& facts) {
  std::int64_t count = 0;
  for (const auto& event : facts.start.events) count += event.name == "skipped" ? 1 : 0;
  if (count == 0) return {};
  return format(
      "{} skipped because loss or gradients were not finite: lower "
      "optimizer.learning_rate, or set optimizer.clip_norm",
      count == 1 ? std::string("a step was") : format("{} steps were", count));
}

Verdict rising_loss(const Facts& facts) {
  const auto& steps = facts.run.record.steps;
  if (steps.size() < 2 * loss_window || steps.size() < least_steps) return {};
  double lowest = telemetry::absent;
  double last = telemetry::absent;
  for (std::size_t end = loss_window; end <= steps.size(); end += loss_window) {
    std::vector<double> losses;
    for (auto at = end - loss_window; at < end; ++at) losses.push_back(steps[at].loss);
    last = median(std::move(losses));
    lowest = std::fmin(lowest, last);
  }
  if (!(last > risen_loss * lowest)) return {};
  return format(
      "the training loss has risen from {:.3f} to {:.3f} (medians of {} steps): lower "
      "optimizer.learning_rate or set optimizer.clip_norm, and go on from a checkpoint "
      "before the rise",
      lowest, last, loss_window);
}

Verdict overfitting(const Facts& facts) {
  const auto& evaluations = facts.run.record.evaluations;
  const auto best = std::find_if(evaluations.begin(), evaluations.end(), [&](const auto& each) {
    return each.step == facts.figures.best_step;
  });
  const auto after = static_cast<std::size_t>(evaluations.end() - best);
  if (after <= evaluations_after_best ||
      !(facts.figures.held_out_loss >= risen_held_out * facts.figures.best_held_out_loss)) {
    return {};
  }
  return format(
      "the held-out loss was lowest at step {} ({:.4f}) and is {:.4f} now: the model "
      "learns its training data by heart; take the checkpoint of that step "
      "(checkpoint.keep_best keeps it), or train on more data",
      facts.figures.best_step, facts.figures.best_held_out_loss, facts.figures.held_out_loss);
}

Verdict repeated(const Facts& facts) {
  const auto& record = facts.run.record;
  const auto all =
      static_cast<double>(record.repeated_steps) + static_cast<double>(record.steps.size());
  if (record.repeated_steps < few_repeated ||
      static_cast<double>(record.repeated_steps) < much_repeated * all) {
    return {};
  }
  return format(
      "{} steps were lost with earlier starts and made again, {:.0f} % of all: save more "
      "often (checkpoint.every_minutes, checkpoint.every_steps)",
      record.repeated_steps, 100 * static_cast<double>(record.repeated_steps) / all);
}

}  // namespace trireme::report::findings
