// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/placement.hpp"

#include "trireme/base/format.hpp"
#include "trireme/topology/nearness.hpp"

#include "support/load_machine.hpp"

#include <set>

using namespace trireme;
using namespace trireme::tests;
using topology::GpuUse;
using topology::Placement;

namespace {

Placement placed(const topology::Machine& machine, int ranks, GpuUse use = GpuUse::one_each) {
  auto placement = topology::place_ranks(machine, ranks, use);
  REQUIRE(placement.ok());
  return std::move(placement).value();
}

/// The NUMA nodes of each rank's cores, by the operating system's numbers.
std::vector<std::vector<int>> nodes_of(const topology::Machine& machine,
                                       const Placement& placement) {
  std::vector<std::vector<int>> all;
  for (const auto& slot : placement.slots) {
    std::vector<int> nodes;
    for (const int node : slot.cpus.numa_nodes) {
      nodes.push_back(machine.numa_nodes[static_cast<std::size_t>(node)].os_index);
    }
    all.push_back(std::move(nodes));
  }
  return all;
}

std::vector<std::string> nics_of(const topology::Machine& machine, const Placement& placement) {
  std::vector<std::string> all;
  for (const auto& slot : placement.slots) {
    std::vector<std::string> names;
    for (const int nic : slot.nics) {
      names.push_back(name_of(machine.nics[static_cast<std::size_t>(nic)]));
    }
    all.push_back(base::format("{}", base::join(names, "+")));
  }
  return all;
}

std::vector<int> gpus_of(const Placement& placement) {
  std::vector<int> gpus;
  for (const auto& slot : placement.slots) gpus.push_back(slot.gpu);
  return gpus;
}

using Texts = std::vector<std::string>;
using Nodes = std::vector<std::vector<int>>;

}  // namespace

TEST_CASE("pairs on a switch share out its two NICs, and storage NICs serve nobody") {
  const auto machine = load(paired_switches());
  const auto placement = placed(machine, 8);
  CHECK(gpus_of(placement) == std::vector{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(nics_of(machine, placement) ==
        Texts{"mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11"});
  CHECK(nodes_of(machine, placement) == Nodes{{0}, {0}, {0}, {0}, {1}, {1}, {1}, {1}});
  for (const auto& slot : placement.slots) CHECK(slot.cpus.compute_pus.size() == 14);
}

TEST_CASE("fewer ranks than GPUs are spread over packages and get both NICs of their switch") {
  const auto machine = load(paired_switches());
  const auto placement = placed(machine, 4);
  CHECK(gpus_of(placement) == std::vector{0, 2, 4, 6});
  CHECK(nics_of(machine, placement) ==
        Texts{"mlx5_0+mlx5_3", "mlx5_4+mlx5_5", "mlx5_6+mlx5_9", "mlx5_10+mlx5_11"});
  CHECK(gpus_of(placed(machine, 2)) == std::vector{0, 4});
}

TEST_CASE("CPUs follow the GPU where NUMA nodes are numbered against it") {
  const auto machine = load(dies_with_nics());
  const auto placement = placed(machine, 8);
  CHECK(nodes_of(machine, placement) == Nodes{{3}, {3}, {1}, {1}, {0}, {0}, {2}, {2}});
  CHECK(nics_of(machine, placement) ==
        Texts{"hsn0", "hsn0", "hsn1", "hsn1", "hsn2", "hsn2", "hsn3", "hsn3"});
}

TEST_CASE("GPU memory that is a NUMA node has no cores and is nobody's home") {
  const auto machine = load(grace_blackwell());
  REQUIRE(machine.numa_nodes.size() == 6);
  const auto placement = placed(machine, 4);
  CHECK(nodes_of(machine, placement) == Nodes{{0}, {0}, {1}, {1}});
  CHECK(nics_of(machine, placement) == Texts{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"});
  for (const auto& slot : placement.slots) CHECK(slot.cpus.compute_pus.size() == 36);
}

TEST_CASE("ranks stay at their GPUs when all of them hang on one package") {
  const auto machine = load(asymmetric());
  const auto placement = placed(machine, 4);
  CHECK(nodes_of(machine, placement) == Nodes{{1}, {1}, {1}, {1}});
  // The NICs are on the other one: equally far from all, so each carries half.
  CHECK(nics_of(machine, placement) == Texts{"mlx5_0", "mlx5_1", "mlx5_0", "mlx5_1"});
  for (const auto& slot : placement.slots) CHECK(slot.cpus.compute_pus.size() == 6);
  // Without GPUs the same machine is used whole.
  const auto cpu_only = placed(machine, 4, GpuUse::none);
  CHECK(nodes_of(machine, cpu_only) == Nodes{{0}, {0}, {1}, {1}});
  CHECK(gpus_of(cpu_only) == std::vector{-1, -1, -1, -1});
}

TEST_CASE("a NIC whose port is down carries nothing") {
  const auto machine = load(four_pcie_gpus());
  const auto placement = placed(machine, 4);
  CHECK(nics_of(machine, placement) == Texts{"mlx5_0", "mlx5_0", "mlx5_0", "mlx5_0"});
  CHECK(placement.slots[0].nic_reason.find("4 ranks share it") != std::string::npos);
}

TEST_CASE("a rank far from all NICs leaves the near one to the rank that has it near") {
  auto machine = load(four_pcie_gpus());
  // A second NIC that is up, on the second package; GPU 0's own package has none left.
  machine.nics[1].pci.numa_nodes = {1};
  machine.nics[1].pci.bridge = machine.gpus[2].pci.bridge;
  machine.nics[1].active_port = 1;
  machine.nics[0].pci.numa_nodes = {1};
  machine.nics[0].pci.bridge = machine.gpus[3].pci.bridge;
  const auto placement = placed(machine, 2);
  CHECK(gpus_of(placement) == std::vector{0, 2});
  CHECK(nics_of(machine, placement) == Texts{"mlx5_0", "mlx5_1"});
}

TEST_CASE("NICs of one kind only are a fabric") {
  auto machine = load(paired_switches());
  // A RoCE NIC on the first GPU's own switch, nearer than any other: InfiniBand cannot reach it.
  auto roce = machine.nics[1];
  roce.kind = topology::NicKind::roce;
  roce.verbs_name = "mlx5_99";
  roce.pci.bridge = machine.gpus[0].pci.bridge;
  machine.nics.push_back(roce);
  CHECK(nics_of(machine, placed(machine, 8)).front() == "mlx5_0");
}

TEST_CASE("more ranks than GPUs share them, with a warning") {
  const auto machine = load(four_pcie_gpus());
  const auto placement = placed(machine, 8);
  CHECK(gpus_of(placement) == std::vector{0, 0, 1, 1, 2, 2, 3, 3});
  REQUIRE(placement.warnings.size() == 1);
  CHECK(placement.warnings[0].find("8 local ranks share 4 GPUs") != std::string::npos);
}

TEST_CASE("GPUs that a process may not see are not placed on") {
  const auto machine = load(paired_switches());
  const std::vector<std::string> visible{"0000:74:00.0", "0000:76:00.0"};
  const auto narrowed = topology::with_gpus(machine, visible);
  REQUIRE(narrowed.ok());
  const auto placement = placed(*narrowed, 2);
  CHECK(nodes_of(machine, placement) == Nodes{{1}, {1}});
  CHECK(nics_of(*narrowed, placement) == Texts{"mlx5_10", "mlx5_11"});
  const auto unknown = topology::with_gpus(machine, std::vector<std::string>{"0000:99:00.0"});
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.failure().text.find("0000:99:00.0") != std::string::npos);
}

TEST_CASE("ranks that a launcher has bound take the free GPU nearest to their mask") {
  const auto machine = load(paired_switches());
  // Rank 0 on the second package, rank 1 on the first.
  const std::vector<topology::CpuSet> masks{topology::CpuSet{56, 57}, topology::CpuSet{0, 1}};
  const auto placement = topology::place_ranks(machine, masks, GpuUse::one_each);
  REQUIRE(placement.ok());
  CHECK(gpus_of(*placement) == std::vector{4, 0});
  CHECK(placement->slots[0].cpus.pus == masks[0]);
}

TEST_CASE("a GPU whose own cores are forbidden gets the nearest that are allowed, and it is said") {
  auto machine = load(asymmetric());
  machine.allowed = topology::CpuSet{0, 1, 2, 3, 4, 5, 6, 7};
  const auto placement = placed(machine, 2);
  CHECK(nodes_of(machine, placement) == Nodes{{0}, {0}});
  CHECK(placement.slots[0].cpus.reason.find("the nearest to GPU 0 that may be used") !=
        std::string::npos);
}

TEST_CASE("every placement gives equal, allowed, disjoint cores, and every GPU once") {
  for (const auto& spec : all_machines()) {
    const auto machine = load(spec);
    for (const int ranks : {1, 2, 3, 4, 5, 8}) {
      INFO(spec.name << " with " << ranks << " ranks");
      const auto placement = placed(machine, ranks);
      const auto cores = static_cast<int>(topology::allowed_cores(machine).size());
      topology::CpuSet used;
      std::set<int> gpus;
      for (const auto& slot : placement.slots) {
        CHECK(machine.allowed.contains(slot.cpus.pus));
        CHECK(slot.cpus.compute_pus.size() == placement.slots.front().cpus.compute_pus.size());
        if (ranks <= cores) CHECK_FALSE(used.intersects(slot.cpus.pus));
        used = used.united(slot.cpus.pus);
        CHECK_FALSE(slot.cpus.reason.empty());
        CHECK((slot.gpu >= 0) == !machine.gpus.empty());
        gpus.insert(slot.gpu);
        CHECK(slot.nics.empty() == topology::fabric_nics(machine).empty());
        CHECK(slot.nic_reason.empty() == slot.nics.empty());
      }
      if (!machine.gpus.empty()) {
        CHECK(gpus.size() == std::min(machine.gpus.size(), static_cast<std::size_t>(ranks)));
      }
    }
  }
}
