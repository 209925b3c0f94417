// SPDX-License-Identifier: Apache-2.0
#include "machine_parts.hpp"

namespace trireme::tests {

using base::format;

namespace {

/// "mlx5_3", "mlx5_4"...: `count` NICs, whose ports say nothing of their state.
std::vector<PciSpec> nics(int first, int count) {
  std::vector<PciSpec> all;
  for (int number = first; number < first + count; ++number) {
    all.push_back(nic({}, format("mlx5_{}", number)));
  }
  return all;
}

}  // namespace

HostBridgeSpec switch_with(int numa_node, int base, const std::vector<PciSpec>& nics) {
  const int last = base + 2 + 2 * static_cast<int>(nics.size());
  std::vector<PciSpec> ports;
  int slot = 0;
  for (auto nic : nics) {
    const int nic_bus = base + 3 + slot;
    nic.bus_id = format("0000:{:02x}:00.0", nic_bus);
    ports.push_back(behind_port(base + 2, slot, nic_bus, std::move(nic)));
    ports.push_back(
        behind_port(base + 2, slot + 1, nic_bus + 1, gpu(format("0000:{:02x}:00.0", nic_bus + 1))));
    slot += 2;
  }
  auto upstream = bridge(format("0000:{:02x}:00.0", base + 1),
                         format("{:02x}-{:02x}", base + 2, last), std::move(ports));
  auto root_port = bridge(format("0000:{:02x}:01.0", base), format("{:02x}-{:02x}", base + 1, last),
                          {std::move(upstream)});
  return host(numa_node, format("{:02x}-{:02x}", base, last), {std::move(root_port)});
}

MachineSpec laptop() {
  MachineSpec spec;
  spec.name = "laptop";
  spec.threads_per_core = 2;
  spec.memory_per_numa_bytes = std::uint64_t{16} << 30;
  PciSpec graphics{PciSpec::Kind::graphics, "0000:00:02.0", {}, "8086:9a49", {}, {}};
  spec.host_bridges = {host(0, "00-02", {graphics, nic("0000:00:14.3", "wlan0")})};
  return spec;
}

MachineSpec two_socket_server() {
  MachineSpec spec;
  spec.name = "two-socket-server";
  spec.packages = 2;
  spec.cores_per_l3 = 24;
  spec.host_bridges = {
      host(0, "00-03", {nic("0000:00:1f.6", "eth0")}),
      host(1, "80-83", {bridge("0000:80:01.0", "81-81", {nic("0000:81:00.0", "mlx5_0")})})};
  return spec;
}

MachineSpec smt_server() {
  MachineSpec spec;
  spec.name = "smt-server";
  spec.packages = 2;
  spec.cores_per_l3 = 16;
  spec.threads_per_core = 2;
  return spec;
}

MachineSpec sub_numa_clusters() {
  MachineSpec spec;
  spec.name = "sub-numa-clusters";
  spec.packages = 2;
  spec.numa_per_package = 4;
  spec.l3_per_numa = 2;
  return spec;
}

MachineSpec hybrid() {
  MachineSpec spec;
  spec.name = "hybrid";
  spec.cores_per_l3 = 6;
  spec.threads_per_core = 2;
  spec.efficiency_cores = 8;
  spec.numbering = PuNumbering::siblings_together;
  return spec;
}

MachineSpec no_numa() {
  MachineSpec spec;
  spec.name = "no-numa";
  spec.packages = 2;
  spec.numa_per_package = 0;
  spec.cores_per_l3 = 4;
  return spec;
}

MachineSpec rails() {
  MachineSpec spec;
  spec.name = "rails";
  spec.packages = 2;
  spec.cores_per_l3 = 56;
  spec.threads_per_core = 2;
  spec.memory_per_numa_bytes = std::uint64_t{1} << 40;
  for (int index = 0; index < 8; ++index) {
    spec.host_bridges.push_back(switch_with(index / 4, 0x10 + 0x10 * index, nics(index, 1)));
  }
  spec.host_bridges.push_back(host(0, "00-01", {nic("0000:00:1f.6", "eth0")}));
  return spec;
}

MachineSpec shared_switches() {
  auto spec = two_socket_server();
  spec.name = "shared-switches";
  spec.host_bridges.clear();
  for (int index = 0; index < 4; ++index) {
    spec.host_bridges.push_back(switch_with(index / 2, 0x10 + 0x20 * index, nics(2 * index, 2)));
  }
  return spec;
}

MachineSpec small_cgroup() {
  auto spec = two_socket_server();
  spec.name = "small-cgroup";
  for (int pu = 0; pu < 48; ++pu) {
    const bool ours = pu == 2 || pu == 3 || (pu >= 30 && pu < 33);
    if (!ours) spec.forbidden_pus.push_back(pu);
  }
  return spec;
}

MachineSpec memory_kinds() {
  MachineSpec spec;
  spec.name = "memory-kinds";
  spec.numa_per_package = 4;
  spec.cores_per_l3 = 18;
  spec.threads_per_core = 4;
  spec.memory_per_numa_bytes = std::uint64_t{24} << 30;
  spec.gpu_memories = 4;
  return spec;
}

MachineSpec many_numa_nodes() {
  MachineSpec spec;
  spec.name = "many-numa-nodes";
  spec.packages = 24;
  spec.threads_per_core = 2;
  spec.memory_per_numa_bytes = std::uint64_t{8} << 30;
  spec.host_bridges.push_back(host(23, "40-40", {nic("0000:40:00.0", "mlx5_0", "4")}));
  return spec;
}

std::vector<MachineSpec> all_machines() {
  return {laptop(),          two_socket_server(), smt_server(),      sub_numa_clusters(),
          hybrid(),          no_numa(),           rails(),           shared_switches(),
          small_cgroup(),    paired_switches(),   grace_blackwell(), dies_with_nics(),
          four_pcie_gpus(),  four_way_smt(),      sixteen_gpus(),    memory_kinds(),
          many_numa_nodes(), asymmetric()};
}

}  // namespace trireme::tests
