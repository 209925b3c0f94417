// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/machine_comparison.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>
#include <utility>

namespace trireme::plan {

namespace {

using base::format;

bool allows(const predict::Machine& machine, const std::string& data) {
  if (data.empty()) return true;
  const auto tags = base::split(machine.site.allows, ',');
  return std::any_of(tags.begin(), tags.end(),
                     [&](std::string_view tag) { return base::trimmed(tag) == data; });
}

/// Ranks that the request is of on a machine.
base::Result<int> ranks_on(const predict::Machine& machine, const ComparisonRequest& request) {
  if (request.nodes == 0) return request.ranks;
  return ranks_of_nodes(machine, request.nodes);
}

double figure_of(const ComparedMachine& compared, Objective objective) {
  switch (objective) {
    case Objective::cost:
      return *compared.run.cost;
    case Objective::carbon:
      return *compared.run.kg_co2;
    case Objective::time:
    case Objective::gpus:
      break;
  }
  return compared.run.hours;
}

/// Why a machine cannot be compared on these terms; empty where it can.
std::string missing(const predict::Machine& machine, Tenure tenure,
                    const ComparisonRequest& request) {
  if (!allows(machine, request.data)) {
    return format("its site.allows does not have '{}', which the data needs", request.data);
  }
  const bool is_spot = tenure == Tenure::spot;
  const double price = is_spot ? machine.site.spot_hour : machine.site.node_hour;
  if (request.objective == Objective::cost && price == 0) {
    return format("it has no site.{}", is_spot ? "spot_hour" : "node_hour");
  }
  if (request.objective == Objective::carbon && machine.site.busy_watts == 0) {
    return "it has no site.busy_watts";
  }
  if (request.objective == Objective::carbon && machine.site.grams_per_kwh == 0) {
    return "it has no site.grams_per_kwh";
  }
  if (is_spot && machine.site.spot_mtbf_node_days == 0) {
    return "it has no site.spot_mtbf_node_days, without which nobody knows what is done again";
  }
  return {};
}

ComparedMachine compared_on(const config::Config& config, const model::ModelConfig& model,
                            const predict::Machine& machine, const ComparisonRequest& request,
                            int ranks) {
  ComparedMachine compared{
      .machine = machine.name, .ranks = ranks, .best = {}, .run = {}, .left_out = {}};
  const SearchRequest search{.ranks = ranks,
                             .top = 1,
                             .margin = request.margin,
                             .why = "",
                             .explains_known = false,
                             .kept = {},
                             .threads = request.threads};
  auto found = search_layouts(config, model, machine, search);
  if (!found) {
    compared.left_out = found.failure().text;
    return compared;
  }
  compared.best = std::move(found->best.front());
  return compared;
}

}  // namespace

base::Result<std::vector<ComparedMachine>> compare_machines(const config::Config& config,
                                                            const model::ModelConfig& model,
                                                            const ComparisonRequest& request) {
  std::vector<ComparedMachine> all;
  for (const auto& file : request.machines) {
    const auto machine = predict::read_machine(file);
    if (!machine) return machine.failure();
    const auto ranks = ranks_on(*machine, request);
    if (!ranks) return ranks.failure();
    std::optional<ComparedMachine> searched;
    for (const auto tenure : {Tenure::own, Tenure::spot}) {
      if (tenure == Tenure::spot && !request.includes_spot) continue;
      auto why = missing(*machine, tenure, request);
      if (!why.empty()) {
        all.push_back({.machine = machine->name,
                       .tenure = tenure,
                       .ranks = *ranks,
                       .best = {},
                       .run = {},
                       .left_out = std::move(why)});
        continue;
      }
      if (!searched) searched = compared_on(config, model, *machine, request, *ranks);
      auto compared = *searched;
      compared.tenure = tenure;
      if (compared.best) {
        compared.run = estimate_run(*machine, tenure, run_size(config.options(), model, *ranks),
                                    *compared.best->step);
        if (!compared.run.ends()) compared.left_out = plan::text(compared.run);
      }
      all.push_back(std::move(compared));
    }
  }
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    if (a.left_out.empty() != b.left_out.empty()) return a.left_out.empty();
    return a.left_out.empty() && figure_of(a, request.objective) < figure_of(b, request.objective);
  });
  for (auto& each : all) {
    if (!each.left_out.empty()) break;
    const double least = figure_of(all.front(), request.objective);
    each.tie = figure_of(each, request.objective) <= least * (1 + request.margin);
  }
  return all;
}

std::string text(const std::vector<ComparedMachine>& machines, const ComparisonRequest& request) {
  auto text = format("least {} of a run, by the best layout on each machine\n\n",
                     request.objective == Objective::carbon
                         ? "CO2"
                         : objective_names[static_cast<std::size_t>(request.objective)]);
  const auto ties = std::count_if(machines.begin(), machines.end(),
                                  [](const ComparedMachine& each) { return each.tie; });
  for (const auto& each : machines) {
    const char* const spot = each.tenure == Tenure::spot ? " (spot)" : "";
    if (!each.left_out.empty()) {
      text += format("{}{}: left out, {}\n", each.machine, spot, each.left_out);
      continue;
    }
    text += format("{}{}: {}{}\n  {}\n", each.machine, spot, plan::text(each.run),
                   each.tie && ties > 1 ? format("; a tie, within {:.0f} %", 100 * request.margin)
                                        : std::string(),
                   plan::text(each.best->layout));
  }
  return text;
}

base::Json to_json(const std::vector<ComparedMachine>& machines) {
  base::Json rows = base::Json::array();
  for (const auto& each : machines) {
    base::Json row{
        {"machine", each.machine}, {"spot", each.tenure == Tenure::spot}, {"ranks", each.ranks}};
    if (each.left_out.empty()) {
      row["layout"] = plan::text(each.best->layout);
      row["settings"] = settings_json(each.best->layout);
      row["seconds"] = predict::seconds_of(each.best->step->total());
      row["run"] = to_json(each.run);
      row["tie"] = each.tie;
    } else {
      row["left_out"] = each.left_out;
    }
    rows.push_back(std::move(row));
  }
  return {{"machines", rows}};
}

}  // namespace trireme::plan
