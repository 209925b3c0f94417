// SPDX-License-Identifier: Apache-2.0
#include "gpu_order.hpp"

#include "trireme/topology/nearness.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

namespace trireme::topology {
namespace {

/// First GPU (by bus order) that is at least so near to this one: it identifies the set of both,
/// whatever the set's own number is.
int first_within(const Machine& machine, int gpu, Nearness nearness) {
  const auto& own = machine.gpus[static_cast<std::size_t>(gpu)].pci;
  for (int other = 0; other < gpu; ++other) {
    const auto& location = machine.gpus[static_cast<std::size_t>(other)].pci;
    if (distance_between(machine, own, location).nearness <= nearness) return other;
  }
  return gpu;
}

}  // namespace

std::vector<int> neighbourly_gpus(const Machine& machine) {
  std::vector<int> order(machine.gpus.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::array<int, 4>> keys;
  for (const int gpu : order) {
    keys.push_back({first_within(machine, gpu, Nearness::same_package),
                    first_within(machine, gpu, Nearness::same_numa_node),
                    first_within(machine, gpu, Nearness::same_switch), gpu});
  }
  std::sort(order.begin(), order.end(), [&](int one, int other) {
    return keys[static_cast<std::size_t>(one)] < keys[static_cast<std::size_t>(other)];
  });
  return order;
}

std::vector<int> deal_gpus(const Machine& machine, int ranks) {
  const auto order = neighbourly_gpus(machine);
  std::vector<int> gpus;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto place =
        static_cast<std::size_t>(rank) * order.size() / static_cast<std::size_t>(ranks);
    gpus.push_back(order[place]);
  }
  return gpus;
}

std::vector<int> gpus_near_slots(const Machine& machine, const std::vector<BindingSlot>& slots) {
  const auto order = neighbourly_gpus(machine);
  std::vector<int> uses(machine.gpus.size(), 0);
  std::vector<int> gpus;
  for (const auto& slot : slots) {
    const auto cost = [&](int gpu) {
      const auto index = static_cast<std::size_t>(gpu);
      std::uint64_t nearest = ~std::uint64_t{0};
      for (const int node : slot.numa_nodes) {
        nearest = std::min(nearest, distance_to_numa_node(machine, machine.gpus[index].pci, node));
      }
      return std::tuple(uses[index], nearest);
    };
    const auto best = *std::min_element(
        order.begin(), order.end(), [&](int one, int other) { return cost(one) < cost(other); });
    ++uses[static_cast<std::size_t>(best)];
    gpus.push_back(best);
  }
  return gpus;
}

}  // namespace trireme::topology
