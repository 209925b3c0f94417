// SPDX-License-Identifier: Apache-2.0
// Steps and runs of a layout over its sizes.
#include "trireme/base/chart.hpp"
#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"

#include "drawings.hpp"
#include "line_chart.hpp"
#include "plan/search/reasons.hpp"

#include <algorithm>

namespace trireme::plan {
namespace {

using base::format;
using Look = ChartCurve::Look;
using Scale = ChartAxis::Scale;

constexpr auto of_prediction = base::part_fills[0];
constexpr auto of_ideal = base::part_fills[3];
constexpr auto of_others = base::part_fills[3];

ChartAxis rank_axis(const std::vector<ScaledStep>& steps) {
  ChartAxis axis{.title = "ranks", .scale = Scale::logarithmic};
  for (const auto& step : steps) axis.ticks.push_back(step.ranks);
  return axis;
}

/// Steps over ranks, beside those of perfect scaling.
LineChart chart_of(const Pictures& pictures, const std::vector<ScaledStep>& steps) {
  ChartCurve predicted{.name = "predicted, with the part of the first one's rate a rank",
                       .fill = of_prediction,
                       .points = {}};
  ChartCurve ideal{.name = "ideal", .fill = of_ideal, .points = {}, .look = Look::ideal};
  for (const auto& step : steps) {
    predicted.points.push_back(
        {static_cast<double>(step.ranks), step.seconds,
         format("{}, {:.0f} %", seconds_text(step.seconds), 100 * step.efficiency)});
    ideal.points.push_back({static_cast<double>(step.ranks), step.seconds * step.efficiency});
  }
  return {
      .title = {},
      .subtitle = format("data parallelism of {} doubled and halved; whether its memory fits is "
                         "not looked at",
                         pictures.layout),
      .x = rank_axis(steps),
      .y = {.title = "seconds a step"},
      .curves = {std::move(ideal), std::move(predicted)}};
}

ChartPoint run_point(const ScaledStep& step) {
  return {step.run.hours, *step.run.cost, base::counted(step.ranks, "rank")};
}

}  // namespace

std::string strong_drawing(const Pictures& pictures) {
  auto chart = chart_of(pictures, pictures.strong);
  const auto batch = pictures.strong.empty() ? 0 : pictures.strong.front().global_batch;
  chart.title =
      format("Strong scaling on {}: {} a step", pictures.machine, base::counted(batch, "sequence"));
  chart.y.scale = Scale::logarithmic;
  return svg_of(chart);
}

std::string weak_drawing(const Pictures& pictures) {
  auto chart = chart_of(pictures, pictures.weak);
  const auto each =
      pictures.weak.empty()
          ? 0.0
          : static_cast<double>(pictures.weak.front().global_batch) / pictures.weak.front().ranks;
  chart.title =
      format("Weak scaling on {}: {:.4g} sequences a rank and step", pictures.machine, each);
  return svg_of(chart);
}

std::string pareto_drawing(const Pictures& pictures) {
  const auto front = pareto_front(pictures.strong);
  ChartCurve best{.name = "none is faster and cheaper", .fill = of_prediction, .points = {}};
  ChartCurve others{.name = "others", .fill = of_others, .points = {}, .look = Look::dots};
  for (const auto index : front) best.points.push_back(run_point(pictures.strong[index]));
  for (std::size_t index = 0; index < pictures.strong.size(); ++index) {
    const auto& step = pictures.strong[index];
    const bool is_best = std::find(front.begin(), front.end(), index) != front.end();
    if (!is_best && step.run.ends() && step.run.cost) others.points.push_back(run_point(step));
  }
  LineChart chart{
      .title = format("Time and money of a run of {} on {}", pictures.layout, pictures.machine),
      .subtitle =
          "all train.steps with saves and failures, by site.node_hour; data parallelism "
          "doubled and halved",
      .x = {.title = "hours"},
      .y = {.title = "money, in the currency of site.node_hour"},
      .curves = {}};
  if (!others.points.empty()) chart.curves.push_back(std::move(others));
  chart.curves.push_back(std::move(best));
  return svg_of(chart);
}

}  // namespace trireme::plan
