// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/topology/cpu_set.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Parts of a node, as plain data. References between them are indices into the vectors of Machine;
/// `os_index` is the operating system's number of a part.
namespace trireme::topology {

struct Package {
  int os_index = 0;
  std::string model;  ///< "Intel(R) Xeon(R) Platinum 8480C"; empty when unknown
};

struct NumaNode {
  int os_index = 0;
  std::uint64_t memory_bytes = 0;
  CpuSet pus;        ///< hardware threads near this memory; empty for memory without cores
  int package = -1;  ///< -1 when it belongs to no single package
  std::string kind;  ///< "MCDRAM", "GPUMemory"...; empty for ordinary memory
  /// Relative distance to every node (10 = local), in the order of Machine::numa_nodes; empty when
  /// the machine does not report it.
  std::vector<std::uint64_t> distances;
};

/// Cores of one speed. A machine whose cores are alike has one kind.
struct CoreKind {
  std::string name;    ///< "performance", "efficiency" or what the machine calls it
  int efficiency = 0;  ///< higher is faster
};

struct Core {
  int os_index = 0;
  CpuSet pus;  ///< its hardware threads, also those that this process may not use
  int package = -1;
  int numa_node = -1;  ///< index of its ordinary memory
  int kind = 0;
};

struct Cache {
  int level = 0;  ///< 2 or 3 (or more)
  std::uint64_t size_bytes = 0;
  CpuSet pus;
};

/// A host bridge (parent -1), or a bridge below another one: a root port, a switch.
struct PciBridge {
  int parent = -1;
  std::string bus_id;  ///< "0000:d0" of a host bridge, "0000:d0:07.1" of another
  std::string name;
};

struct PciLocation {
  std::string bus_id;  ///< "0000:d1:00.0", lower case, as nvidia-smi and /sys/bus/pci write it
  int bridge = -1;     ///< the bridge right above; -1 when unknown
  /// Nodes whose cores are nearest: normally one, several when the firmware reports only "this
  /// package" or nothing.
  std::vector<int> numa_nodes;
  std::string name;                      ///< vendor and device, as far as known
  unsigned vendor_id = 0;                ///< PCI vendor
  unsigned device_id = 0;                ///< PCI device
  double link_gigabytes_per_second = 0;  ///< of its PCI link; 0 when unknown
};

/// An accelerator that can compute; a display controller of a management board is none.
struct Gpu {
  PciLocation pci;
};

enum class NicKind { ethernet, infiniband, omni_path, slingshot, elastic_fabric, roce };
/// "InfiniBand"...
const char* name_of(NicKind kind);
/// True if it moves memory without the CPU (RDMA), so that a GPU's traffic should use it.
bool has_rdma(NicKind kind);

/// Port function of a NIC.
struct Nic {
  PciLocation pci;
  NicKind kind = NicKind::ethernet;
  std::string verbs_name;      ///< "mlx5_0", for UCX_NET_DEVICES and NCCL_IB_HCA; may be empty
  std::string interface_name;  ///< "eth0", "ib0"; may be empty
  /// Lowest of its verbs ports that is up, from 1; 0 when all are down; none when the system does
  /// not report it.
  std::optional<int> active_port;
};
/// "mlx5_0", else "hsn0", else the bus id.
std::string name_of(const Nic& nic);

struct Machine {
  std::string name;  ///< host or product name; may be empty
  std::vector<Package> packages;
  std::vector<NumaNode> numa_nodes;
  std::vector<CoreKind> core_kinds;
  std::vector<Core> cores;
  std::vector<Cache> caches;
  std::vector<PciBridge> bridges;
  std::vector<Gpu> gpus;  ///< in PCI bus order
  std::vector<Nic> nics;  ///< in PCI bus order
  CpuSet allowed;         ///< hardware threads that this process may use (cgroup, taskset)
};

/// All hardware threads of the machine.
CpuSet all_pus(const Machine& machine);
/// Indices of the cores of which at least one hardware thread is allowed, ascending.
std::vector<int> allowed_cores(const Machine& machine);
std::uint64_t total_memory_bytes(const Machine& machine);

}  // namespace trireme::topology
