// SPDX-License-Identifier: Apache-2.0
#include "core_groups.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace trireme::topology {

const Core& core_at(const Machine& machine, int core) {
  return machine.cores[static_cast<std::size_t>(core)];
}

int total_cores(const std::vector<Group>& groups) {
  return std::accumulate(groups.begin(), groups.end(), 0, [](int sum, const Group& group) {
    return sum + static_cast<int>(group.size());
  });
}

int efficiency_of(const Machine& machine, int core) {
  return machine.core_kinds[static_cast<std::size_t>(core_at(machine, core).kind)].efficiency;
}

std::vector<Group> group_cores(const Machine& machine, const std::vector<int>& cores, Level level) {
  std::map<int, Group> groups;
  for (const int core : cores) {
    int key = 0;
    switch (level) {
      case Level::numa_node:
        key = core_at(machine, core).numa_node;
        break;
      case Level::package:
        key = core_at(machine, core).package;
        break;
      case Level::machine:
        break;
    }
    groups[key].push_back(core);
  }
  std::vector<Group> result;
  for (auto& [key, group] : groups) {
    std::stable_sort(group.begin(), group.end(), [&](int one, int other) {
      return efficiency_of(machine, one) > efficiency_of(machine, other);
    });
    result.push_back(std::move(group));
  }
  return result;
}

std::string node_numbers(const Machine& machine, const std::vector<int>& nodes) {
  std::vector<int> numbers;
  for (const int node : nodes) {
    numbers.push_back(machine.numa_nodes[static_cast<std::size_t>(node)].os_index);
  }
  std::sort(numbers.begin(), numbers.end());
  return base::format("NUMA node{} {}", numbers.size() == 1 ? "" : "s", ranges_text(numbers));
}

BindingSlot make_slot(const Machine& machine, int local_rank, std::span<const int> cores) {
  BindingSlot slot;
  slot.local_rank = local_rank;
  std::vector<int> pus;
  for (const int core : cores) {
    const auto usable = core_at(machine, core).pus.intersected(machine.allowed);
    pus.insert(pus.end(), usable.pus().begin(), usable.pus().end());
    slot.compute_pus.push_back(usable.first());
    slot.numa_nodes.push_back(core_at(machine, core).numa_node);
  }
  slot.pus = CpuSet(std::move(pus));
  std::sort(slot.numa_nodes.begin(), slot.numa_nodes.end());
  slot.numa_nodes.erase(std::unique(slot.numa_nodes.begin(), slot.numa_nodes.end()),
                        slot.numa_nodes.end());
  return slot;
}

std::string cores_text(std::size_t count) {
  return base::format("{} core{}", count, count == 1 ? "" : "s");
}

std::span<const int> slice_of(const Machine& machine, const Group& group, int place, int count,
                              int cores_each) {
  const bool one_kind =
      efficiency_of(machine, group.front()) == efficiency_of(machine, group.back());
  const auto size = static_cast<std::size_t>(cores_each);
  const auto begin =
      one_kind ? static_cast<std::size_t>(place) * group.size() / static_cast<std::size_t>(count)
               : static_cast<std::size_t>(place) * size;
  return std::span(group).subspan(begin, size);
}

std::vector<int> usable_cores(const Machine& machine, const std::vector<int>& cores, int ranks) {
  int fastest = efficiency_of(machine, cores.front());
  for (const int core : cores) fastest = std::max(fastest, efficiency_of(machine, core));
  std::vector<int> fast;
  std::copy_if(cores.begin(), cores.end(), std::back_inserter(fast),
               [&](int core) { return efficiency_of(machine, core) == fastest; });
  return static_cast<int>(fast.size()) >= ranks ? fast : cores;
}

std::string own_cores_text(const Machine& machine, const BindingSlot& slot) {
  auto text = cores_text(slot.compute_pus.size()) + " of its own";
  const auto threads = static_cast<std::size_t>(slot.pus.size());
  if (threads > slot.compute_pus.size()) {
    text += base::format(" ({} hardware threads, one of each core computes)", threads);
  }
  text += " on " + node_numbers(machine, slot.numa_nodes);
  return text;
}

std::vector<std::string> notes_of(std::size_t usable, std::size_t used, std::size_t slow) {
  std::vector<std::string> notes;
  if (slow > 0) {
    notes.push_back(
        base::format("{} of slower kind {} left idle: a rank's threads would wait for {}",
                     cores_text(slow), slow == 1 ? "is" : "are", slow == 1 ? "it" : "them"));
  }
  if (const auto rest = usable - used; rest > 0) {
    notes.push_back(base::format("{} {} left to the system, so that all ranks have equally many",
                                 cores_text(rest), rest == 1 ? "is" : "are"));
  }
  return notes;
}

}  // namespace trireme::topology
