// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/binding.hpp"

#include "trireme/base/format.hpp"

#include "core_groups.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace trireme::topology {
namespace {

/// The most cores that each of `ranks` ranks can have inside a group; 0 when they do not fit.
int cores_for_each(const std::vector<Group>& groups, int ranks) {
  for (int count = total_cores(groups) / ranks; count > 0; --count) {
    int places = 0;
    for (const auto& group : groups) places += static_cast<int>(group.size()) / count;
    if (places >= ranks) return count;
  }
  return 0;
}

struct Choice {
  Level level = Level::machine;
  int cores_each = 0;
  std::vector<Group> groups;
};

/// The narrowest level that leaves each rank at least three quarters of an even share.
Choice choose_level(const Machine& machine, const std::vector<int>& cores, int ranks) {
  const int even_share = static_cast<int>(cores.size()) / ranks;
  for (const auto level : {Level::numa_node, Level::package, Level::machine}) {
    auto groups = group_cores(machine, cores, level);
    const int cores_each = cores_for_each(groups, ranks);
    if (4 * cores_each >= 3 * even_share) return {level, cores_each, std::move(groups)};
  }
  return {};
}

/// Ranks per group, as even as the groups' room allows; among equals the package with fewest ranks
/// is next, then the first group.
std::vector<int> spread(const Machine& machine, const std::vector<Group>& groups, int ranks,
                        int cores_each) {
  std::vector<int> counts(groups.size(), 0);
  std::map<int, int> per_package;
  const auto package_of = [&](std::size_t group) {
    return core_at(machine, groups[group].front()).package;
  };
  for (int rank = 0; rank < ranks; ++rank) {
    std::size_t best = groups.size();
    for (std::size_t group = 0; group < groups.size(); ++group) {
      if ((counts[group] + 1) * cores_each > static_cast<int>(groups[group].size())) continue;
      if (best == groups.size() || std::pair(counts[group], per_package[package_of(group)]) <
                                       std::pair(counts[best], per_package[package_of(best)])) {
        best = group;
      }
    }
    TRIREME_EXPECT(best < groups.size(), "cores_for_each() promised a place for every rank");
    ++counts[best];
    ++per_package[package_of(best)];
  }
  return counts;
}

/// Ranks per group in proportion to its cores (largest remainder), for sharing.
std::vector<int> spread_sharing(const std::vector<Group>& groups, int ranks) {
  const int total = total_cores(groups);
  std::vector<int> counts;
  std::vector<std::pair<int, std::size_t>> remainders;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto share = static_cast<long>(groups[group].size()) * ranks;
    counts.push_back(static_cast<int>(share / total));
    remainders.emplace_back(-static_cast<int>(share % total), group);
  }
  std::sort(remainders.begin(), remainders.end());
  const int placed = std::accumulate(counts.begin(), counts.end(), 0);
  for (int rest = 0; rest < ranks - placed; ++rest) {
    ++counts[remainders[static_cast<std::size_t>(rest)].second];
  }
  return counts;
}

/// Reason of the cores of a rank that shares them with no other.
std::string reason_of(const Machine& machine, Level level, const BindingSlot& slot) {
  auto text = own_cores_text(machine, slot);
  if (machine.numa_nodes.size() == 1) return text;
  switch (level) {
    case Level::numa_node:
      return text + "; all its memory is near";
    case Level::package:
      return text + "; inside one package, as single nodes would leave over a quarter unused";
    case Level::machine:
      return text + "; over all packages, as single ones would leave over a quarter unused";
  }
  return text;
}

BindingPlan plan_whole_cores(const Machine& machine, const std::vector<int>& cores, int ranks,
                             std::size_t slow) {
  const auto choice = choose_level(machine, cores, ranks);
  const auto counts = spread(machine, choice.groups, ranks, choice.cores_each);
  BindingPlan plan;
  plan.notes =
      notes_of(cores.size(),
               static_cast<std::size_t>(choice.cores_each) * static_cast<std::size_t>(ranks), slow);
  for (std::size_t group = 0; group < counts.size(); ++group) {
    const auto& members = choice.groups[group];
    for (int place = 0; place < counts[group]; ++place) {
      const auto slice = slice_of(machine, members, place, counts[group], choice.cores_each);
      auto slot = make_slot(machine, static_cast<int>(plan.slots.size()), slice);
      slot.reason = reason_of(machine, choice.level, slot);
      plan.slots.push_back(std::move(slot));
    }
  }
  return plan;
}

BindingPlan plan_shared(const Machine& machine, const std::vector<int>& cores, int ranks) {
  const auto groups = group_cores(machine, cores, Level::numa_node);
  const auto counts = spread_sharing(groups, ranks);
  BindingPlan plan;
  for (std::size_t group = 0; group < counts.size(); ++group) {
    for (int place = 0; place < counts[group]; ++place) {
      auto slot = make_slot(machine, static_cast<int>(plan.slots.size()), groups[group]);
      // The ranks of a group move freely over its cores: those that wait leave room for others.
      slot.compute_pus = {
          slot.compute_pus[static_cast<std::size_t>(place) % slot.compute_pus.size()]};
      slot.shared = counts[group] > 1;
      slot.reason =
          base::format("{} ranks share the {} of {}", counts[group],
                       cores_text(groups[group].size()), node_numbers(machine, slot.numa_nodes));
      plan.slots.push_back(std::move(slot));
    }
  }
  plan.warnings.push_back(base::format(
      "{} local ranks share {} (ranks take turns, so a step takes about {:.1f} times as long); "
      "start at most {} on this node, or ask for more cores",
      ranks, cores_text(cores.size()),
      static_cast<double>(ranks) / static_cast<double>(cores.size()), cores.size()));
  return plan;
}

}  // namespace

base::Result<BindingPlan> plan_binding(const Machine& machine, int local_ranks) {
  if (local_ranks < 1) {
    return base::usage_failure(
        base::format("{} local ranks cannot be bound; there is at least 1", local_ranks));
  }
  const auto cores = allowed_cores(machine);
  if (cores.empty()) {
    return base::Failure{base::ExitCode::topology,
                         "no core may be used (the allowed set of CPUs is empty); check the job's "
                         "cgroup and the recorded machine's allowed_cpuset"};
  }
  const auto usable = usable_cores(machine, cores, local_ranks);
  if (local_ranks > static_cast<int>(usable.size())) {
    return plan_shared(machine, usable, local_ranks);
  }
  return plan_whole_cores(machine, usable, local_ranks, cores.size() - usable.size());
}

base::Result<BindingPlan> plan_binding(const Machine& machine, std::span<const CpuSet> masks) {
  const bool equal = std::all_of(masks.begin(), masks.end(),
                                 [&](const CpuSet& mask) { return mask == masks.front(); });
  if (equal) {
    auto narrowed = machine;
    if (!masks.empty()) narrowed.allowed = masks.front().intersected(all_pus(machine));
    return plan_binding(narrowed, static_cast<int>(masks.size()));
  }
  BindingPlan plan;
  for (std::size_t rank = 0; rank < masks.size(); ++rank) {
    auto own = machine;
    own.allowed = masks[rank].intersected(all_pus(machine));
    const auto cores = allowed_cores(own);
    if (cores.empty()) {
      return base::Failure{base::ExitCode::topology,
                           base::format("local rank {} may use CPUs {}, none of which this machine "
                                        "has; check the launcher's binding options",
                                        rank, masks[rank].text())};
    }
    auto slot = make_slot(own, static_cast<int>(rank), cores);
    for (std::size_t other = 0; other < masks.size(); ++other) {
      if (other != rank && masks[other].intersects(own.allowed)) slot.shared = true;
    }
    slot.reason = base::format("{} on {}, as the launcher bound it{}", cores_text(cores.size()),
                               node_numbers(machine, slot.numa_nodes),
                               slot.shared ? ", together with other ranks" : "");
    plan.slots.push_back(std::move(slot));
  }
  return plan;
}

}  // namespace trireme::topology
