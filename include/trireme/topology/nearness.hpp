// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/topology/machine.hpp"

#include <optional>
#include <string>
#include <vector>

namespace trireme::topology {

/// Farthest part that a path between two devices crosses, nearest first.
enum class Nearness { same_switch, same_host_bridge, same_numa_node, same_package, far };
/// "the same PCIe switch"...
const char* text_of(Nearness nearness);

struct Distance {
  Nearness nearness = Nearness::far;
  int bridge_hops = 0;  ///< bridges between the two, when they share a host bridge
  auto operator<=>(const Distance&) const = default;
};

Distance distance_between(const Machine& machine, const PciLocation& one, const PciLocation& other);

/// Distance between a NUMA node and a device: 0 when its cores are the device's own, else the
/// smallest distance that the machine reports (10 = local), or 20 when it reports none.
std::uint64_t distance_to_numa_node(const Machine& machine, const PciLocation& device,
                                    int numa_node);

/// Choice of the NIC of one GPU.
struct NicChoice {
  int gpu = 0;
  int nic = 0;
  Distance distance;
  std::string reason;
};

/// NICs that ranks of different nodes can meet on: of one kind, because an InfiniBand NIC
/// does not reach a RoCE one. InfiniBand before Omni-Path, Slingshot, Elastic Fabric, RoCE and
/// Ethernet; a NIC whose ports are all down counts only where no NIC of its kind is up.
std::vector<int> fabric_nics(const Machine& machine);

/// A NIC of fabric_nics() for each of `gpus`: the nearest, and among equally near ones the least
/// used so far, so that GPUs that share a switch with several NICs get one rail each. Empty without
/// a NIC.
std::vector<NicChoice> assign_nics(const Machine& machine, const std::vector<int>& gpus);

}  // namespace trireme::topology
