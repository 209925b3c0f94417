// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::nccl_net {

/// NIC, or several that carry one connection's data together.
struct Device {
  std::string name;      ///< "mlx5_0:1", "eth0", "mlx5_0:1+mlx5_1:1"
  std::string ucx_name;  ///< the value of UCX_NET_DEVICES that chooses it
  std::string pci_path;  ///< in /sys; empty for a virtual device
  std::uint64_t guid = 0;
  int megabits_per_second = 10000;
  int port = 1;
  int part_count = 1;
};

/// Environment variables that choose devices: names as NCCL and UCX write them.
struct DeviceChoice {
  std::string ib_hca;       ///< NCCL_IB_HCA
  std::string interfaces;   ///< NCCL_SOCKET_IFNAME
  std::string net_devices;  ///< UCX_NET_DEVICES
  std::string tcp_segment;  ///< UCX_TCP_RX_SEG_SIZE
};

/// True if a list such as "mlx5_0,mlx5_1", "^docker,lo" (all but) or "=eth0" (whole names, else
/// prefixes) includes a name; an empty list includes all.
bool list_takes(std::string_view list, std::string_view name);

/// Active InfiniBand and RoCE ports, or, if there is none, the interfaces that are up and have an
/// address, except loopback. `sys` is /sys except in tests.
std::vector<Device> find_devices(const DeviceChoice& choice,
                                 const std::vector<std::string>& interfaces,
                                 const std::filesystem::path& sys = "/sys");

/// Joins several devices into one.
Device joined(const std::vector<Device>& devices);

}  // namespace trireme::nccl_net
