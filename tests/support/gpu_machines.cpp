// SPDX-License-Identifier: Apache-2.0
#include "machine_parts.hpp"

namespace trireme::tests {

using base::format;

namespace {

/// A device of a PCI domain of its own: host bridge, root port, device.
HostBridgeSpec own_domain(int numa_node, int domain, int device_bus, PciSpec device) {
  device.bus_id = format("{:04x}:{:02x}:00.0", domain, device_bus);
  auto port = bridge(format("{:04x}:00:00.0", domain),
                     format("{0:04x}:{1:02x}-{1:02x}", domain, device_bus), {std::move(device)});
  return host(numa_node, format("{:04x}:00-{:02x}", domain, device_bus), {std::move(port)});
}

}  // namespace

MachineSpec paired_switches() {
  MachineSpec spec;
  spec.name = "paired-switches";
  spec.packages = 2;
  spec.cores_per_l3 = 56;
  spec.threads_per_core = 2;
  spec.memory_per_numa_bytes = std::uint64_t{1} << 40;
  // As on the real thing, the numbers of NICs follow the bus, storage NICs among them.
  const int first_nics[] = {0, 4, 6, 10};
  const int second_nics[] = {3, 5, 9, 11};
  for (int index = 0; index < 4; ++index) {
    spec.host_bridges.push_back(switch_with(index / 2, 0x10 + 0x20 * index,
                                            {nic({}, format("mlx5_{}", first_nics[index]), "4"),
                                             nic({}, format("mlx5_{}", second_nics[index]), "4")}));
  }
  spec.host_bridges.push_back(
      host(0, "28-2a",
           {behind_port(0x28, 1, 0x29, nic("0000:29:00.0", "mlx5_1", "4")),
            behind_port(0x28, 2, 0x2a, nic("0000:2a:00.0", "mlx5_2", "1"))}));
  spec.host_bridges.push_back(
      host(1, "a8-aa",
           {behind_port(0xa8, 1, 0xa9, nic("0000:a9:00.0", "mlx5_7", "4")),
            behind_port(0xa8, 2, 0xaa, nic("0000:aa:00.0", "mlx5_8", "1"))}));
  spec.host_bridges.push_back(host(0, "00-01", {nic("0000:00:1f.6", "eno3")}));
  return spec;
}

MachineSpec grace_blackwell() {
  constexpr const char* blackwell = "10de:2941";
  MachineSpec spec;
  spec.name = "grace-blackwell";
  spec.packages = 2;
  spec.cores_per_l3 = 72;
  spec.memory_per_numa_bytes = std::uint64_t{480} << 30;
  spec.gpu_memories = 4;
  int number = 0;
  for (const int package : {0, 1}) {
    const int base = 0x10 * package;
    spec.host_bridges.push_back(
        own_domain(package, base, 3, nic({}, format("mlx5_{}", number++), "4")));
    spec.host_bridges.push_back(
        own_domain(package, base + 2, 3, nic({}, format("mlx5_{}", number++), "4")));
    spec.host_bridges.push_back(own_domain(package, base + 8, 1, gpu({}, blackwell)));
    spec.host_bridges.push_back(own_domain(package, base + 9, 1, gpu({}, blackwell)));
  }
  return spec;
}

MachineSpec dies_with_nics() {
  constexpr const char* die = "1002:7408";
  constexpr const char* cassini = "17db:0501";
  MachineSpec spec;
  spec.name = "dies-with-nics";
  spec.numa_per_package = 4;
  spec.l3_per_numa = 2;
  spec.cores_per_l3 = 8;
  spec.threads_per_core = 2;
  spec.memory_per_numa_bytes = std::uint64_t{128} << 30;
  // Packages of two dies by bus number, and the node that each is wired to.
  const int numa_nodes[] = {3, 1, 0, 2};
  for (int package = 0; package < 4; ++package) {
    const int node = numa_nodes[package];
    const int bus = 0xc0 + 8 * package;
    spec.host_bridges.push_back(
        host(node, format("{:02x}-{:02x}", bus, bus + 1),
             {behind_port(bus, 1, bus + 1, gpu(format("0000:{:02x}:00.0", bus + 1), die))}));
    auto slingshot = nic(format("0000:{:02x}:00.0", bus + 5), format("hsn{}", package));
    slingshot.ids = cassini;
    spec.host_bridges.push_back(
        host(node, format("{:02x}-{:02x}", bus + 4, bus + 6),
             {behind_port(bus + 4, 1, bus + 5, std::move(slingshot)),
              behind_port(bus + 4, 2, bus + 6, gpu(format("0000:{:02x}:00.0", bus + 6), die))}));
  }
  return spec;
}

MachineSpec four_pcie_gpus() {
  constexpr const char* ada = "10de:26b9";
  MachineSpec spec;
  spec.name = "four-pcie-gpus";
  spec.packages = 2;
  spec.cores_per_l3 = 32;
  spec.threads_per_core = 2;
  spec.memory_per_numa_bytes = std::uint64_t{256} << 30;
  for (int index = 0; index < 4; ++index) {
    const int bus = 0x10 + 0x40 * (index / 2) + 0x10 * (index % 2);
    spec.host_bridges.push_back(
        host(index / 2, format("{:02x}-{:02x}", bus, bus + 1),
             {behind_port(bus, 1, bus + 1, gpu(format("0000:{:02x}:00.0", bus + 1), ada))}));
  }
  auto port = bridge("0000:30:01.0", "31-31",
                     {nic("0000:31:00.0", "mlx5_0", "4"), nic("0000:31:00.1", "mlx5_1", "1")});
  spec.host_bridges.push_back(host(0, "30-31", {std::move(port)}));
  spec.host_bridges.push_back(host(1, "80-80", {nic("0000:80:1f.6", "eno1")}));
  return spec;
}

MachineSpec four_way_smt() {
  constexpr const char* volta = "10de:1db1";
  MachineSpec spec;
  spec.name = "four-way-smt";
  spec.packages = 2;
  spec.cores_per_l3 = 22;
  spec.threads_per_core = 4;
  spec.numbering = PuNumbering::siblings_together;
  spec.memory_per_numa_bytes = std::uint64_t{128} << 30;
  spec.gpu_memories = 4;
  for (int index = 0; index < 4; ++index) {
    const int package = index / 2;
    spec.host_bridges.push_back(own_domain(package, index + 4, 1, gpu({}, volta)));
    if (index % 2 == 0) {
      spec.host_bridges.push_back(
          own_domain(package, 0x30 + package, 1, nic({}, format("mlx5_{}", package), "4")));
    }
  }
  return spec;
}

MachineSpec sixteen_gpus() {
  MachineSpec spec;
  spec.name = "sixteen-gpus";
  spec.packages = 2;
  spec.cores_per_l3 = 24;
  for (int index = 0; index < 16; ++index) {
    const int bus = 0x10 + 2 * index;
    spec.host_bridges.push_back(
        host(index / 8, format("{:02x}-{:02x}", bus, bus + 1),
             {behind_port(bus, 1, bus + 1, gpu(format("0000:{:02x}:00.0", bus + 1)))}));
  }
  return spec;
}

MachineSpec asymmetric() {
  MachineSpec spec;
  spec.name = "asymmetric";
  spec.packages = 2;
  spec.cores_per_l3 = 24;
  for (int index = 0; index < 4; ++index) {
    const int bus = 0x80 + 0x10 * index;
    spec.host_bridges.push_back(
        host(1, format("{:02x}-{:02x}", bus, bus + 1),
             {behind_port(bus, 1, bus + 1, gpu(format("0000:{:02x}:00.0", bus + 1)))}));
  }
  spec.host_bridges.push_back(
      host(0, "10-12",
           {behind_port(0x10, 1, 0x11, nic("0000:11:00.0", "mlx5_0", "4")),
            behind_port(0x10, 2, 0x12, nic("0000:12:00.0", "mlx5_1", "4"))}));
  return spec;
}

}  // namespace trireme::tests
