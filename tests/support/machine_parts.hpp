// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/format.hpp"

#include "machines.hpp"

#include <utility>

/// Parts that descriptions of machines are put together from.
namespace trireme::tests {

inline constexpr const char* connectx7 = "15b3:1021";
inline constexpr const char* hopper = "10de:2330";

inline PciSpec bridge(std::string bus_id, std::string buses, std::vector<PciSpec> children) {
  return {PciSpec::Kind::bridge, std::move(bus_id), std::move(buses), {}, {}, std::move(children)};
}

inline HostBridgeSpec host(int numa_node, std::string buses, std::vector<PciSpec> children) {
  return {numa_node, bridge({}, std::move(buses), std::move(children))};
}

inline PciSpec gpu(std::string bus_id, const char* ids = hopper) {
  return {PciSpec::Kind::gpu, std::move(bus_id), {}, ids, {}, {}};
}

inline PciSpec nic(std::string bus_id, std::string system_name, std::string port_state = {}) {
  return {PciSpec::Kind::nic,   std::move(bus_id), {}, connectx7, std::move(system_name), {},
          std::move(port_state)};
}

/// A device below a root port of its own: "0000:10:01.0" with bus 11 behind it.
inline PciSpec behind_port(int bus, int slot, int below, PciSpec device) {
  return bridge(base::format("0000:{:02x}:{:02x}.0", bus, slot),
                base::format("{0:02x}-{0:02x}", below), {std::move(device)});
}

/// A root port with a switch below it that has a GPU and a NIC by turns, one pair for each of
/// `nics`: buses base (root port), base + 1 (switch), base + 2... (its ports' devices).
HostBridgeSpec switch_with(int numa_node, int base, const std::vector<PciSpec>& nics);

}  // namespace trireme::tests
