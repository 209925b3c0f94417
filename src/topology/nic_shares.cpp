// SPDX-License-Identifier: Apache-2.0
#include "nic_shares.hpp"

#include "trireme/base/format.hpp"
#include "trireme/topology/nearness.hpp"

#include <algorithm>

namespace trireme::topology {
namespace {

/// A rank's CPUs as a place: on their nodes, below no bridge.
Distance distance_to_cpus(const Machine& machine, const BindingSlot& slot, const PciLocation& nic) {
  Distance best;
  for (const int node : slot.numa_nodes) {
    PciLocation place;
    place.numa_nodes = {node};
    auto distance = distance_between(machine, place, nic);
    if (distance_to_numa_node(machine, nic, node) == 0) {
      distance = {Nearness::same_numa_node, 0};
    }
    best = std::min(best, distance);
  }
  return best;
}

Distance distance_of(const Machine& machine, const PlacementSlot& slot, int nic) {
  const auto& location = machine.nics[static_cast<std::size_t>(nic)].pci;
  if (slot.gpu < 0) return distance_to_cpus(machine, slot.cpus, location);
  return distance_between(machine, machine.gpus[static_cast<std::size_t>(slot.gpu)].pci, location);
}

std::string listed(const Machine& machine, const std::vector<int>& nics) {
  std::vector<std::string> names;
  for (const int nic : nics) names.push_back(name_of(machine.nics[static_cast<std::size_t>(nic)]));
  return base::format("{} ({})", base::join(names, ", "),
                      name_of(machine.nics[static_cast<std::size_t>(nics.front())].kind));
}

std::string reason_of(const Machine& machine, const PlacementSlot& slot, int sharing) {
  const auto distance = distance_of(machine, slot, slot.nics.front());
  auto text = listed(machine, slot.nics) + ": ";
  if (slot.gpu >= 0) {
    text += base::format("{} as GPU {}",
                         distance.nearness == Nearness::far ? std::string("not in the same package")
                                                            : text_of(distance.nearness),
                         slot.gpu);
  } else {
    text += base::format("{} as its CPUs", distance.nearness == Nearness::far
                                               ? std::string("not in the same package")
                                               : text_of(distance.nearness));
  }
  if (distance.bridge_hops > 0) {
    text += base::format(", {} bridge{} on the way", distance.bridge_hops,
                         distance.bridge_hops == 1 ? "" : "s");
  }
  if (distance.nearness == Nearness::far) text += " (none is nearer)";
  if (sharing > 1) text += base::format("; {} ranks share it", sharing);
  return text;
}

/// Slots in the order of the distance of their nearest NIC: slots with a near one choose first, and
/// slots to which all are equally far take the rest.
std::vector<PlacementSlot*> nearest_first(const Machine& machine, const std::vector<int>& fabric,
                                          std::vector<PlacementSlot>& slots) {
  std::vector<std::pair<Distance, PlacementSlot*>> order;
  for (auto& slot : slots) {
    Distance nearest;
    for (const int nic : fabric) nearest = std::min(nearest, distance_of(machine, slot, nic));
    order.emplace_back(nearest, &slot);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  std::vector<PlacementSlot*> result;
  for (const auto& [distance, slot] : order) result.push_back(slot);
  return result;
}

/// The nearest NIC for each slot, the least used among equals.
std::vector<int> take_one_each(const Machine& machine, const std::vector<int>& fabric,
                               std::vector<PlacementSlot>& slots) {
  std::vector<int> uses(machine.nics.size(), 0);
  for (auto* slot : nearest_first(machine, fabric, slots)) {
    const auto cost = [&](int nic) {
      return std::pair(distance_of(machine, *slot, nic), uses[static_cast<std::size_t>(nic)]);
    };
    const int best = *std::min_element(fabric.begin(), fabric.end(),
                                       [&](int one, int other) { return cost(one) < cost(other); });
    slot->nics = {best};
    ++uses[static_cast<std::size_t>(best)];
  }
  return uses;
}

}  // namespace

void share_nics(const Machine& machine, std::vector<PlacementSlot>& slots) {
  const auto fabric = fabric_nics(machine);
  if (fabric.empty()) return;
  auto uses = take_one_each(machine, fabric, slots);
  for (const int nic : fabric) {
    if (uses[static_cast<std::size_t>(nic)] > 0) continue;
    PlacementSlot* taker = nullptr;
    for (auto& slot : slots) {
      if (distance_of(machine, slot, nic) != distance_of(machine, slot, slot.nics.front()))
        continue;
      if (taker == nullptr || slot.nics.size() < taker->nics.size()) taker = &slot;
    }
    if (taker == nullptr) continue;
    taker->nics.push_back(nic);
    ++uses[static_cast<std::size_t>(nic)];
  }
  for (auto& slot : slots) {
    std::sort(slot.nics.begin(), slot.nics.end());
    slot.nic_reason = reason_of(machine, slot, uses[static_cast<std::size_t>(slot.nics.front())]);
  }
}

}  // namespace trireme::topology
