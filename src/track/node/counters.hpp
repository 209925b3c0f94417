// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// Counters that the kernel has of this node.
namespace trireme::track {

/// Bytes of a network adapter since it is up.
struct Traffic {
  std::string device;  ///< "eth0"; "mlx5_0:1" for a port of an InfiniBand or RoCE adapter
  double received = 0;
  double sent = 0;
};
std::vector<Traffic> network_traffic();

/// Bytes of a line of /proc/meminfo, by its key with the colon.
double memory_bytes(const std::string& key);

double load_of_a_minute();

}  // namespace trireme::track
