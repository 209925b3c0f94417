// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/nearness.hpp"

#include "trireme/base/format.hpp"

#include "support/load_machine.hpp"

#include <set>

using namespace trireme;
using namespace trireme::tests;
using topology::Nearness;

namespace {

topology::NicChoice nearest_nic(const topology::Machine& machine, int gpu) {
  return topology::assign_nics(machine, {gpu}).at(0);
}

}  // namespace

TEST_CASE("each GPU of a rail machine has the NIC on its own switch") {
  const auto machine = load(rails());
  REQUIRE(machine.gpus.size() == 8);
  REQUIRE(machine.nics.size() == 9);
  for (int gpu = 0; gpu < 8; ++gpu) {
    const auto choice = nearest_nic(machine, gpu);
    const auto& nic = machine.nics[static_cast<std::size_t>(choice.nic)];
    CHECK(nic.verbs_name == base::format("mlx5_{}", gpu));
    CHECK(choice.distance.nearness == Nearness::same_switch);
    CHECK(machine.gpus[static_cast<std::size_t>(gpu)].pci.numa_nodes == std::vector<int>{gpu / 4});
  }
}

TEST_CASE("GPUs that share a switch with several NICs get one each") {
  const auto machine = load(shared_switches());
  const auto choices = topology::assign_nics(machine, {0, 1, 2, 3, 4, 5, 6, 7});
  std::set<int> nics;
  for (const auto& choice : choices) {
    CHECK(choice.distance.nearness == Nearness::same_switch);
    CHECK(choice.nic / 2 == choice.gpu / 2);
    nics.insert(choice.nic);
  }
  CHECK(nics.size() == 8);
  // Asked alone, both take the first.
  CHECK(nearest_nic(machine, 1).nic == nearest_nic(machine, 0).nic);
}

TEST_CASE("distance grows from switch over host bridge and NUMA node to another package") {
  const auto machine = load(shared_switches());
  const auto far_from_first = [&](int gpu) {
    return topology::distance_between(machine, machine.gpus[0].pci,
                                      machine.gpus[static_cast<std::size_t>(gpu)].pci);
  };
  CHECK(far_from_first(1).nearness == Nearness::same_switch);
  CHECK(far_from_first(1).bridge_hops == 3);
  CHECK(far_from_first(2).nearness == Nearness::same_numa_node);
  CHECK(far_from_first(4).nearness == Nearness::far);
  CHECK(far_from_first(1) < far_from_first(2));
  CHECK(far_from_first(2) < far_from_first(4));
}

TEST_CASE("a management NIC carries a GPU's traffic only when there is no other") {
  auto machine = load(rails());
  CHECK(topology::fabric_nics(machine).size() == 8);
  std::erase_if(machine.nics, [](const topology::Nic& nic) { return has_rdma(nic.kind); });
  CHECK(nearest_nic(machine, 5).reason.find("eth0 (Ethernet)") != std::string::npos);
  machine.nics.clear();
  CHECK(topology::assign_nics(machine, {5}).empty());
}

TEST_CASE("integrated graphics are no GPU to train on") {
  const auto machine = load(laptop());
  CHECK(machine.gpus.empty());
  REQUIRE(machine.nics.size() == 1);
  CHECK(machine.nics[0].interface_name == "wlan0");
}

TEST_CASE("the distance to a NUMA node is what the machine states") {
  const auto machine = load(rails());
  CHECK(topology::distance_to_numa_node(machine, machine.gpus[0].pci, 0) == 0);
  CHECK(topology::distance_to_numa_node(machine, machine.gpus[0].pci, 1) == 32);
}
