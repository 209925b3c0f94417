// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/run_estimate.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/optim/rule.hpp"
#include "trireme/plan/save_interval.hpp"

#include <limits>
#include <utility>

namespace trireme::plan {

namespace {

using predict::Part;

constexpr double hour = 3600;
constexpr double minute = 60;
constexpr double percent = 100;
constexpr double thousand = 1000;
/// Part of the time below which nobody waits for what is left of it.
constexpr double least_share = 1e-6;

}  // namespace

double busy_share(const predict::StepPrediction& step) {
  const auto waits = step.parts[Part::pipeline] + step.parts[Part::bubble] + step.parts[Part::data];
  return 1 - predict::seconds_of(waits) / predict::seconds_of(step.total());
}

double node_watts(const predict::Site& site, double busy_share) {
  if (site.idle_watts == 0) return site.busy_watts;
  return (1 - busy_share) * site.idle_watts + busy_share * site.busy_watts;
}

double kwh_of(const predict::Site& site, double node_hours, double watts) {
  const double pue = site.pue > 0 ? site.pue : 1;
  return node_hours * watts * pue / thousand;
}

double kg_of(const predict::Site& site, double kwh) {
  return kwh * site.grams_per_kwh / thousand;
}

RunSize run_size(const schema::Options& keys, const model::ModelConfig& model, int ranks) {
  constexpr double fp32_bytes = 4;
  const auto states = optim::state_names(optim::rule_from(keys), optim::Content::elements).size();
  return {.ranks = ranks,
          .steps = keys.train.steps,
          .state_bytes = fp32_bytes * (1 + static_cast<double>(states)) *
                         static_cast<double>(model::parameter_count(model)),
          .saves_beside = keys.checkpoint.asynchronous};
}

RunEstimate estimate_run(const predict::Machine& machine, Tenure tenure, const RunSize& run,
                         const predict::StepPrediction& step) {
  const auto& site = machine.site;
  RunEstimate estimate;
  estimate.nodes = nodes_of(machine, run.ranks);
  const auto failures = failure_times(machine, tenure, estimate.nodes);
  const auto save = save_times(machine, run, estimate.nodes);
  if (failures && save) {
    const double interval = save_interval(*save, *failures);
    estimate.effective = predict::effective_share(interval, *save, *failures);
    estimate.failure_hours = failures->between / hour;
    estimate.save_minutes = interval / minute;
  }
  if (estimate.effective < least_share) {
    estimate.hours = std::numeric_limits<double>::infinity();
    return estimate;
  }
  const double seconds = static_cast<double>(run.steps) * predict::seconds_of(step.total());
  estimate.hours = seconds / hour / estimate.effective;
  const double node_hours = estimate.hours * estimate.nodes;
  const double price = tenure == Tenure::own ? site.node_hour : site.spot_hour;
  if (price > 0) estimate.cost = node_hours * price;
  if (site.busy_watts > 0) {
    estimate.kwh = kwh_of(site, node_hours, node_watts(site, busy_share(step)));
    if (site.grams_per_kwh > 0) estimate.kg_co2 = kg_of(site, *estimate.kwh);
  }
  return estimate;
}

std::string text(const RunEstimate& estimate) {
  if (!estimate.ends()) {
    return base::format(
        "the run does not end on {}: a failure every {:.3g} h leaves no time for steps between a "
        "restart and a save",
        base::counted(estimate.nodes, "node"), *estimate.failure_hours);
  }
  auto text = base::format("{:.4g} h on {}", estimate.hours, base::counted(estimate.nodes, "node"));
  if (estimate.cost) text += base::format(", {:.4g} of money", *estimate.cost);
  if (estimate.kwh) text += base::format(", {:.4g} kWh", *estimate.kwh);
  if (estimate.kg_co2) text += base::format(", {:.4g} kg of CO2", *estimate.kg_co2);
  if (!estimate.failure_hours) return text;
  return text + base::format(
                    "; a failure every {:.3g} h: with a save every {:.3g} min {:.1f} % of "
                    "the time stays",
                    *estimate.failure_hours, *estimate.save_minutes, percent * estimate.effective);
}

base::Json to_json(const RunEstimate& estimate) {
  base::Json json{{"nodes", estimate.nodes},
                  {"hours", estimate.ends() ? base::Json(estimate.hours) : base::Json()},
                  {"effective", estimate.effective}};
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) json[name] = *value;
  };
  add("failure_hours", estimate.failure_hours);
  add("save_minutes", estimate.save_minutes);
  add("cost", estimate.cost);
  add("kwh", estimate.kwh);
  add("kg_co2e", estimate.kg_co2);
  return json;
}

}  // namespace trireme::plan
