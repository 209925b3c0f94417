// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/machine.hpp"

namespace trireme::topology {

const char* name_of(NicKind kind) {
  switch (kind) {
    case NicKind::ethernet:
      return "Ethernet";
    case NicKind::infiniband:
      return "InfiniBand";
    case NicKind::omni_path:
      return "Omni-Path";
    case NicKind::slingshot:
      return "Slingshot";
    case NicKind::elastic_fabric:
      return "Elastic Fabric";
    case NicKind::roce:
      return "RoCE";
  }
  return "";
}

bool has_rdma(NicKind kind) {
  return kind != NicKind::ethernet;
}

std::string name_of(const Nic& nic) {
  if (!nic.verbs_name.empty()) return nic.verbs_name;
  return nic.interface_name.empty() ? nic.pci.bus_id : nic.interface_name;
}

CpuSet all_pus(const Machine& machine) {
  std::vector<int> pus;
  for (const auto& core : machine.cores) {
    pus.insert(pus.end(), core.pus.pus().begin(), core.pus.pus().end());
  }
  return CpuSet(std::move(pus));
}

std::vector<int> allowed_cores(const Machine& machine) {
  std::vector<int> cores;
  for (std::size_t core = 0; core < machine.cores.size(); ++core) {
    if (machine.allowed.intersects(machine.cores[core].pus)) {
      cores.push_back(static_cast<int>(core));
    }
  }
  return cores;
}

std::uint64_t total_memory_bytes(const Machine& machine) {
  std::uint64_t bytes = 0;
  for (const auto& node : machine.numa_nodes) bytes += node.memory_bytes;
  return bytes;
}

}  // namespace trireme::topology
