// SPDX-License-Identifier: Apache-2.0
#include "objective.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/device/library_memory.hpp"
#include "trireme/plan/run_estimate.hpp"
#include "trireme/plan/save_interval.hpp"

#include <algorithm>

namespace trireme::plan {

namespace {

/// Hours of all nodes that so many ranks fill.
double node_hours(const predict::Machine& machine, int ranks, double seconds) {
  constexpr double hour = 3600;
  return seconds / hour * nodes_of(machine, ranks);
}

}  // namespace

StepSeconds seconds_of(const predict::StepPrediction& step) {
  const double all = predict::seconds_of(step.total());
  return {all, all * busy_share(step)};
}

StepSeconds seconds_of(predict::Time bound, const predict::Site& site) {
  const double all = predict::seconds_of(bound);
  // The less power of the two, all the time: a bound does not say how long a rank waits.
  return {all, site.idle_watts <= site.busy_watts ? 0 : all};
}

Score score_of(Objective objective, const predict::Machine& machine, int ranks,
               const StepSeconds& seconds) {
  switch (objective) {
    case Objective::time:
      return {0, seconds.all};
    case Objective::cost:
      return {0, cost_of_step(machine, ranks, seconds.all)};
    case Objective::carbon:
      return {0, carbon_of_step(machine, ranks, seconds)};
    case Objective::gpus:
      return {static_cast<double>(ranks), seconds.all};
  }
  return {};
}

base::Result<int> ranks_of_nodes(const predict::Machine& machine, int nodes) {
  if (machine.node.computes_on_cores()) {
    return base::usage_failure(
        base::format("--nodes does not go with machine {}, whose cores compute (as many ranks run "
                     "on them as one starts); give --ranks",
                     machine.name));
  }
  const auto ranks = std::int64_t{nodes} * machine.node.gpus;
  if (ranks > most_searched_ranks) {
    return base::usage_failure(
        base::format("--nodes {} of {} GPUs are {} ranks, more than {}; give fewer", nodes,
                     machine.node.gpus, ranks, most_searched_ranks));
  }
  return static_cast<int>(ranks);
}

double cost_of_step(const predict::Machine& machine, int ranks, double seconds) {
  return node_hours(machine, ranks, seconds) * machine.site.node_hour;
}

bool has_carbon(const predict::Machine& machine) {
  return machine.site.busy_watts > 0 && machine.site.grams_per_kwh > 0;
}

double carbon_of_step(const predict::Machine& machine, int ranks, const StepSeconds& seconds) {
  if (seconds.all == 0) return 0;
  const auto& site = machine.site;
  const double watts = node_watts(site, seconds.busy / seconds.all);
  return kg_of(site, kwh_of(site, node_hours(machine, ranks, seconds.all), watts));
}

std::vector<int> worlds_of(const predict::Machine& machine, const SearchRequest& request) {
  if (request.objective == Objective::time) return {request.ranks};
  auto worlds = base::divisors(request.ranks);
  const int of_node = machine.node.gpus;
  std::erase_if(worlds, [&](int ranks) {
    return ranks != request.ranks && of_node > 0 && ranks % of_node != 0 && of_node % ranks != 0;
  });
  return worlds;
}

std::size_t memory_for_arrays(const predict::Machine& machine, const schema::Options& keys) {
  const auto limit = keys.train.memory_limit;
  // The limit is a rank's, and ranks on cores share what is there.
  const bool is_limited = limit > 0 && !machine.node.computes_on_cores();
  return static_cast<std::size_t>(is_limited ? std::min(limit, machine.node.room())
                                             : machine.node.room());
}

std::size_t room_for(const engine::EngineOptions& options, std::size_t memory) {
  const auto& attention = options.numerics.gpu_attention;
  if (!attention) return memory;
  const auto libraries = device::planned_library_memory(engine::attention_of(options), *attention);
  for (const auto& each : libraries) memory -= std::min(memory, each.bytes);
  return memory;
}

}  // namespace trireme::plan
