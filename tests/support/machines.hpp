// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Machines that tests are run on without having them: a description, and the hwloc XML of it.
namespace trireme::tests {

struct PciSpec {
  enum class Kind { bridge, gpu, nic, graphics };
  Kind kind = Kind::bridge;
  std::string bus_id;       ///< "0000:18:00.0"; empty for a host bridge
  std::string buses;        ///< of a bridge: "18-1b", or with its domain "0008:18-1b"
  std::string ids;          ///< "10de:2330"
  std::string system_name;  ///< of a NIC: its verbs device ("mlx5_0"), or interface ("eth0")
  std::vector<PciSpec> children;
  std::string port_state = {};  ///< of a verbs device: "4" is up, "1" down; empty: not said
};

/// A host bridge and the processors that it is near to.
struct HostBridgeSpec {
  int numa_node = 0;  ///< -1: near the whole machine
  PciSpec root;
};

/// How the operating system numbers the hardware threads of a core.
enum class PuNumbering {
  siblings_last,      ///< first threads of all cores, then the second ones (Linux on servers)
  siblings_together,  ///< all threads of a core in a row (Linux on hybrid machines, POWER)
};

struct MachineSpec {
  std::string name;
  int packages = 1;
  int numa_per_package = 1;  ///< 0: one memory for the whole machine
  int l3_per_numa = 1;
  int cores_per_l3 = 4;
  int threads_per_core = 1;
  int efficiency_cores = 0;  ///< added to the last cache, one thread each, of a slower kind
  PuNumbering numbering = PuNumbering::siblings_last;
  std::uint64_t memory_per_numa_bytes = std::uint64_t{64} << 30;
  std::vector<int> forbidden_pus;  ///< taken away by a cgroup
  int gpu_memories = 0;            ///< memories of GPUs that are NUMA nodes, without cores
  std::vector<HostBridgeSpec> host_bridges;
};

std::string machine_xml(const MachineSpec& spec);

MachineSpec laptop();             ///< 4 cores, 2 threads each, integrated graphics, Wi-Fi
MachineSpec two_socket_server();  ///< 2 x 24 cores, no SMT, one InfiniBand NIC
MachineSpec smt_server();         ///< 2 x 16 cores, 2 threads each
MachineSpec sub_numa_clusters();  ///< 2 packages of 4 NUMA nodes with 8 cores each
MachineSpec hybrid();             ///< 6 performance cores with SMT, 8 efficiency cores
MachineSpec no_numa();            ///< 2 packages, one memory
MachineSpec rails();              ///< 2 x 56 cores, 8 GPUs, each with a NIC on its PCIe switch
MachineSpec shared_switches();    ///< 8 GPUs and 8 NICs, two of each on one PCIe switch
MachineSpec small_cgroup();       ///< two_socket_server with all but 5 cores forbidden
/// Like a DGX H100: 2 x 56 cores, 8 GPUs and 8 NICs in pairs on four switches, numbered across; two
/// storage NICs beside, one of them down, and Ethernet.
MachineSpec paired_switches();
/// Like a GB200 NVL node: 2 Grace packages of 72 cores, 4 GPUs whose memories are NUMA nodes, 4
/// NICs in PCI domains of their own.
MachineSpec grace_blackwell();
/// Like an MI250X node: 4 NUMA nodes, 8 GPU dies in pairs, numbered against the nodes, with a
/// Slingshot NIC behind every second one.
MachineSpec dies_with_nics();
MachineSpec
four_pcie_gpus();  ///< 2 x 32 cores, 2 GPUs on each, one NIC with a port up and one down
/// Like a POWER9 node: 2 x 22 cores of 4 threads each, numbered core by core, 4 GPUs whose memories
/// are NUMA nodes, one NIC near each package.
MachineSpec four_way_smt();
/// Like a node of 16 GPUs, seen from a container: GPUs on two packages, no NIC.
MachineSpec sixteen_gpus();
/// Like a Knights Landing in SNC-4 flat mode: 4 NUMA nodes of 18 cores, 4 threads each, and as many
/// of fast memory alone.
MachineSpec memory_kinds();
/// Like a glued SMP: 24 NUMA nodes of 4 cores, 2 threads each, one NIC on the last.
MachineSpec many_numa_nodes();
MachineSpec asymmetric();  ///< 2 packages: all 4 GPUs on one, both NICs on the other

std::vector<MachineSpec> all_machines();

}  // namespace trireme::tests
