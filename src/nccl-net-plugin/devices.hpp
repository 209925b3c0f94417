// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::nccl_net {

/// A NIC, or several that carry one connection's data together.
struct Device {
  std::string name;      ///< "mlx5_0:1", "eth0", "mlx5_0:1+mlx5_1:1"
  std::string ucx_name;  ///< the value of UCX_NET_DEVICES that chooses it
  std::string pci_path;  ///< in /sys; empty for a virtual device
  std::uint64_t guid = 0;
  int megabits_per_second = 10000;
  int port = 1;
  int part_count = 1;
};

/// What of the environment chooses devices: names as NCCL and UCX write them.
struct DeviceChoice {
  std::string ib_hca;       ///< NCCL_IB_HCA
  std::string interfaces;   ///< NCCL_SOCKET_IFNAME
  std::string net_devices;  ///< UCX_NET_DEVICES
  std::string tcp_segment;  ///< UCX_TCP_RX_SEG_SIZE
};

/// Whether a list such as "mlx5_0,mlx5_1", "^docker,lo" (all but) or "=eth0" (whole names, else
/// prefixes) takes a name; an empty list takes all.
bool list_takes(std::string_view list, std::string_view name);

/// Active InfiniBand and RoCE ports, or, where there is none, the interfaces: those that are up and
/// have an address, but loopback. `sys` is /sys except in tests.
std::vector<Device> find_devices(const DeviceChoice& choice,
                                 const std::vector<std::string>& interfaces,
                                 const std::filesystem::path& sys = "/sys");

/// Several as one.
Device joined(const std::vector<Device>& devices);

}  // namespace trireme::nccl_net
