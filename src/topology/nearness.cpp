// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/nearness.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace trireme::topology {
namespace {

/// The distance that the firmware's tables give to memory of another package.
constexpr std::uint64_t unknown_remote_distance = 20;

/// Bridges above a device, nearest first, down to the host bridge.
std::vector<int> bridges_above(const Machine& machine, const PciLocation& device) {
  std::vector<int> path;
  for (int bridge = device.bridge; bridge >= 0;
       bridge = machine.bridges[static_cast<std::size_t>(bridge)].parent) {
    path.push_back(bridge);
  }
  return path;
}

/// Package of all of a device's nodes; -1 when they lie in several.
int package_of(const Machine& machine, const PciLocation& device) {
  if (machine.packages.size() == 1) return 0;
  int package = -1;
  for (const int node : device.numa_nodes) {
    const int here = machine.numa_nodes[static_cast<std::size_t>(node)].package;
    if (here < 0 || (package >= 0 && here != package)) return -1;
    package = here;
  }
  return package;
}

NicChoice choose_nic(const Machine& machine, int gpu, const std::vector<int>& candidates,
                     const std::vector<int>& uses) {
  const auto& location = machine.gpus[static_cast<std::size_t>(gpu)].pci;
  NicChoice best;
  bool found = false;
  for (const int nic : candidates) {
    const auto index = static_cast<std::size_t>(nic);
    const auto distance = distance_between(machine, location, machine.nics[index].pci);
    const bool nearer = distance < best.distance;
    const bool freer =
        distance == best.distance && uses[index] < uses[static_cast<std::size_t>(best.nic)];
    if (!found || nearer || freer) best = {gpu, nic, distance, {}};
    found = true;
  }
  const auto& chosen = machine.nics[static_cast<std::size_t>(best.nic)];
  best.reason = base::format("GPU {} ({}) uses {} ({}): {}", gpu, location.bus_id, name_of(chosen),
                             name_of(chosen.kind), text_of(best.distance.nearness));
  if (best.distance.bridge_hops > 0) {
    best.reason += base::format(", {} bridge{} on the way", best.distance.bridge_hops,
                                best.distance.bridge_hops == 1 ? "" : "s");
  }
  return best;
}

}  // namespace

const char* text_of(Nearness nearness) {
  switch (nearness) {
    case Nearness::same_switch:
      return "the same PCIe switch";
    case Nearness::same_host_bridge:
      return "the same PCIe host bridge";
    case Nearness::same_numa_node:
      return "the same NUMA node";
    case Nearness::same_package:
      return "the same package";
    case Nearness::far:
      return "another package";
  }
  return "";
}

Distance distance_between(const Machine& machine, const PciLocation& one,
                          const PciLocation& other) {
  const auto path = bridges_above(machine, one);
  const auto other_path = bridges_above(machine, other);
  for (std::size_t up = 0; up < path.size(); ++up) {
    const auto meet = std::find(other_path.begin(), other_path.end(), path[up]);
    if (meet == other_path.end()) continue;
    const bool host_bridge = machine.bridges[static_cast<std::size_t>(path[up])].parent < 0;
    return {host_bridge ? Nearness::same_host_bridge : Nearness::same_switch,
            static_cast<int>(up) + static_cast<int>(meet - other_path.begin()) + 1};
  }
  if (one.numa_nodes.size() == 1 && one.numa_nodes == other.numa_nodes) {
    return {Nearness::same_numa_node, 0};
  }
  const int package = package_of(machine, one);
  const bool together = package >= 0 && package == package_of(machine, other);
  return {together ? Nearness::same_package : Nearness::far, 0};
}

std::uint64_t distance_to_numa_node(const Machine& machine, const PciLocation& device,
                                    int numa_node) {
  auto nearest = std::numeric_limits<std::uint64_t>::max();
  for (const int node : device.numa_nodes) {
    if (node == numa_node) return 0;
    const auto& distances = machine.numa_nodes[static_cast<std::size_t>(node)].distances;
    const auto target = static_cast<std::size_t>(numa_node);
    nearest =
        std::min(nearest, target < distances.size() ? distances[target] : unknown_remote_distance);
  }
  return device.numa_nodes.empty() ? unknown_remote_distance : nearest;
}

std::vector<int> fabric_nics(const Machine& machine) {
  constexpr std::array preference{NicKind::infiniband,     NicKind::omni_path, NicKind::slingshot,
                                  NicKind::elastic_fabric, NicKind::roce,      NicKind::ethernet};
  for (const auto kind : preference) {
    std::vector<int> alike;
    std::vector<int> up;
    for (std::size_t nic = 0; nic < machine.nics.size(); ++nic) {
      if (machine.nics[nic].kind != kind) continue;
      alike.push_back(static_cast<int>(nic));
      if (machine.nics[nic].active_port != 0) up.push_back(static_cast<int>(nic));
    }
    if (!up.empty()) return up;
    if (!alike.empty()) return alike;
  }
  return {};
}

std::vector<NicChoice> assign_nics(const Machine& machine, const std::vector<int>& gpus) {
  const auto candidates = fabric_nics(machine);
  if (candidates.empty()) return {};
  std::vector<int> uses(machine.nics.size(), 0);
  std::vector<NicChoice> choices;
  for (const int gpu : gpus) {
    TRIREME_EXPECT(gpu >= 0 && static_cast<std::size_t>(gpu) < machine.gpus.size(),
                   "a GPU of this machine");
    choices.push_back(choose_nic(machine, gpu, candidates, uses));
    ++uses[static_cast<std::size_t>(choices.back().nic)];
  }
  return choices;
}

}  // namespace trireme::topology
