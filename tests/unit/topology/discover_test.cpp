// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/topology/describe.hpp"

#include "support/load_machine.hpp"

#include <sched.h>
#include <unistd.h>

#include <fstream>

using namespace trireme;
using namespace trireme::tests;

TEST_CASE("discovery allows exactly the CPUs that the kernel lets this process use") {
  cpu_set_t mask;
  REQUIRE(sched_getaffinity(0, sizeof mask, &mask) == 0);
  const auto machine = topology::discover().value();
  CHECK(machine.allowed.size() == CPU_COUNT(&mask));
  for (const int pu : machine.allowed.pus()) CHECK(CPU_ISSET(static_cast<unsigned>(pu), &mask));
  CHECK(topology::all_pus(machine).contains(machine.allowed));
  CHECK(topology::total_memory_bytes(machine) > 0);
}

TEST_CASE("a described machine comes back with its cores, memory, caches and distances") {
  const auto machine = load(sub_numa_clusters());
  CHECK(machine.name == "sub-numa-clusters");
  CHECK(machine.packages.size() == 2);
  REQUIRE(machine.numa_nodes.size() == 8);
  CHECK(machine.cores.size() == 64);
  CHECK(machine.caches.size() == 16 + 64);
  CHECK(machine.core_kinds.size() == 1);
  CHECK(machine.numa_nodes[5].memory_bytes == std::uint64_t{64} << 30);
  CHECK(machine.numa_nodes[5].package == 1);
  CHECK(machine.numa_nodes[5].pus.text() == "40-47");
  CHECK(machine.numa_nodes[5].distances ==
        std::vector<std::uint64_t>{32, 32, 32, 32, 12, 10, 12, 12});
  CHECK(machine.cores[40].numa_node == 5);
  CHECK(machine.cores[40].package == 1);
}

TEST_CASE("one memory under two packages belongs to neither") {
  const auto machine = load(no_numa());
  REQUIRE(machine.numa_nodes.size() == 1);
  CHECK(machine.packages.size() == 2);
  CHECK(machine.numa_nodes[0].package == -1);
  CHECK(machine.cores[7].package == 1);
  CHECK(machine.cores[7].numa_node == 0);
}

TEST_CASE("PCI bridges lead from a device up to its host bridge") {
  const auto machine = load(rails());
  std::vector<std::string> path;
  for (int bridge = machine.gpus[3].pci.bridge; bridge >= 0;
       bridge = machine.bridges[static_cast<std::size_t>(bridge)].parent) {
    path.push_back(machine.bridges[static_cast<std::size_t>(bridge)].bus_id);
  }
  CHECK(path ==
        std::vector<std::string>{"0000:42:01.0", "0000:41:00.0", "0000:40:01.0", "0000:40"});
  CHECK(machine.gpus[3].pci.bus_id == "0000:44:00.0");
  CHECK(machine.gpus[3].pci.link_gigabytes_per_second == Approx(63.0));
}

TEST_CASE("a machine as JSON says what the structure says") {
  const auto machine = load(rails());
  const auto text = topology::to_json(machine).dump();
  const auto json = base::parse_json(text, "topology").value();
  CHECK(json["cores"].size() == 112);
  CHECK(json["cores"][60]["numa_node"] == 1);
  CHECK(json["gpus"][7]["bus_id"] == "0000:84:00.0");
  CHECK(json["nics"][1]["verbs_name"] == "mlx5_0");
  CHECK(json["nics"][1]["kind"] == "InfiniBand");
  CHECK(json["allowed"].size() == 224);
  const auto plan = topology::to_json(topology::plan_binding(machine, 8).value());
  CHECK(plan["slots"][7]["compute_pus"].size() == 14);
}

TEST_CASE("a machine is read from a file") {
  const auto path =
      std::filesystem::temp_directory_path() / base::format("trireme-machine-{}.xml", ::getpid());
  std::ofstream(path) << machine_xml(laptop());
  const auto machine = topology::from_xml(path);
  std::filesystem::remove(path);
  REQUIRE(machine.ok());
  CHECK(machine->cores.size() == 4);
}
