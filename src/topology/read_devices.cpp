// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"

#include "read.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace trireme::topology {
namespace {

constexpr unsigned vendor_nvidia = 0x10DE;
constexpr unsigned vendor_amd = 0x1002;
constexpr unsigned vendor_intel = 0x8086;
constexpr unsigned vendor_cray = 0x17DB;
constexpr unsigned vendor_amazon = 0x1D0F;

/// PCI class codes (PCI Code and ID Assignment Specification), base class in the high byte.
constexpr unsigned class_vga = 0x0300;
constexpr unsigned class_3d = 0x0302;
constexpr unsigned class_other_display = 0x0380;
constexpr unsigned class_infiniband = 0x0207;
constexpr unsigned class_fabric = 0x0208;
constexpr unsigned base_network = 0x02;
constexpr unsigned base_accelerator = 0x12;

/// AMD's graphics core for management boards (ES1000), which computes nothing.
constexpr unsigned device_amd_es1000 = 0x515E;

using BridgeIndices = std::map<hwloc_obj_t, int>;

using PciAttributes = decltype(hwloc_obj_attr_u::pcidev);

std::string bus_id(const PciAttributes& pci) {
  return base::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

/// An enumerator from a damaged file may be none of its type's: read as the number that it is.
template <typename Enumeration>
int number_of(const Enumeration& value) {
  static_assert(sizeof(Enumeration) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

std::string name_of_device(hwloc_obj_t object) {
  const auto vendor = info_of(object, "PCIVendor");
  const auto device = info_of(object, "PCIDevice");
  if (!vendor.empty() && !device.empty()) return vendor + " " + device;
  return vendor + device;
}

BridgeIndices read_bridges(hwloc_topology_t topology, Machine& machine) {
  BridgeIndices indices;
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_bridge(topology, object)) != nullptr;) {
    const auto& attributes = object->attr->bridge;
    PciBridge bridge;
    if (number_of(attributes.upstream_type) == HWLOC_OBJ_BRIDGE_PCI) {
      bridge.bus_id = bus_id(attributes.upstream.pci);
    } else {
      bridge.bus_id = base::format("{:04x}:{:02x}", attributes.downstream.pci.domain,
                                   attributes.downstream.pci.secondary_bus);
    }
    bridge.name = name_of_device(object);
    indices.emplace(object, static_cast<int>(machine.bridges.size()));
    machine.bridges.push_back(std::move(bridge));
  }
  for (const auto& [object, index] : indices) {
    const auto parent = indices.find(object->parent);
    if (parent != indices.end()) {
      machine.bridges[static_cast<std::size_t>(index)].parent = parent->second;
    }
  }
  return indices;
}

PciLocation location_of(hwloc_topology_t topology, const Machine& machine,
                        const BridgeIndices& bridges, hwloc_obj_t object) {
  const auto& pci = object->attr->pcidev;
  PciLocation location;
  location.bus_id = bus_id(pci);
  location.name = name_of_device(object);
  location.vendor_id = pci.vendor_id;
  location.device_id = pci.device_id;
  location.link_gigabytes_per_second = static_cast<double>(pci.linkspeed);
  if (const auto bridge = bridges.find(object->parent); bridge != bridges.end()) {
    location.bridge = bridge->second;
  }
  const auto* place = hwloc_get_non_io_ancestor_obj(topology, object);
  const auto near = pus_in(machine, place != nullptr ? place->cpuset : nullptr);
  std::vector<bool> seen(machine.numa_nodes.size(), false);
  for (const auto& core : machine.cores) {
    if (near.intersects(core.pus)) seen[static_cast<std::size_t>(core.numa_node)] = true;
  }
  for (std::size_t node = 0; node < seen.size(); ++node) {
    if (seen[node]) location.numa_nodes.push_back(static_cast<int>(node));
  }
  return location;
}

/// The operating system's devices below a PCI device, by type.
struct SystemDevices {
  std::string network;
  std::string verbs;
  std::optional<int> active_port;
  bool compute = false;
};

/// Lowest active port, from hwloc's info about each port of a verbs device: 4 is "active"
/// (InfiniBand Architecture Specification, PortState).
std::optional<int> active_port_of(hwloc_obj_t device) {
  constexpr int most_ports = 16;
  std::optional<int> active;
  for (int port = 1; port <= most_ports; ++port) {
    const auto state = info_of(device, base::format("Port{}State", port).c_str());
    if (state.empty()) break;
    if (state == "4") return port;
    active = 0;
  }
  return active;
}

void collect_system_devices(hwloc_obj_t parent, SystemDevices& found) {
  for (hwloc_obj_t child = parent->io_first_child; child != nullptr; child = child->next_sibling) {
    if (child->type != HWLOC_OBJ_OS_DEVICE) continue;
    const std::string name = child->name != nullptr ? child->name : "";
    const int type = number_of(child->attr->osdev.type);
    if (type == HWLOC_OBJ_OSDEV_NETWORK && found.network.empty()) found.network = name;
    if (type == HWLOC_OBJ_OSDEV_OPENFABRICS && found.verbs.empty()) {
      found.verbs = name;
      found.active_port = active_port_of(child);
    }
    if (type == HWLOC_OBJ_OSDEV_COPROC) found.compute = true;
  }
}

bool computes(const PciAttributes& pci, const SystemDevices& system) {
  const unsigned kind = pci.class_id;
  if (system.compute || (kind >> 8) == base_accelerator) return true;
  const bool display = kind == class_vga || kind == class_3d || kind == class_other_display;
  if (!display) return false;
  if (pci.vendor_id == vendor_nvidia) return true;
  if (pci.vendor_id == vendor_amd) return pci.device_id != device_amd_es1000;
  // Intel's integrated graphics are VGA controllers, its accelerators are not.
  return pci.vendor_id == vendor_intel && kind != class_vga;
}

NicKind nic_kind(const PciAttributes& pci, const SystemDevices& system) {
  if (pci.class_id == class_infiniband) return NicKind::infiniband;
  if (pci.class_id == class_fabric) return NicKind::omni_path;
  if (pci.vendor_id == vendor_cray) return NicKind::slingshot;
  if (pci.vendor_id == vendor_amazon && (pci.device_id & 0xFFF0U) == 0xEFA0U) {
    return NicKind::elastic_fabric;
  }
  if (system.verbs.empty()) return NicKind::ethernet;
  return system.network.starts_with("ib") ? NicKind::infiniband : NicKind::roce;
}

template <typename Device>
void sort_by_bus(std::vector<Device>& devices) {
  std::stable_sort(devices.begin(), devices.end(), [](const Device& one, const Device& other) {
    return one.pci.bus_id < other.pci.bus_id;
  });
}

}  // namespace

void read_devices(hwloc_topology_t topology, Machine& machine) {
  const auto bridges = read_bridges(topology, machine);
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_pcidev(topology, object)) != nullptr;) {
    const auto& pci = object->attr->pcidev;
    SystemDevices system;
    collect_system_devices(object, system);
    if (computes(pci, system)) {
      machine.gpus.push_back({location_of(topology, machine, bridges, object)});
    } else if ((unsigned{pci.class_id} >> 8) == base_network) {
      machine.nics.push_back({location_of(topology, machine, bridges, object),
                              nic_kind(pci, system), system.verbs, system.network,
                              system.active_port});
    }
  }
  sort_by_bus(machine.gpus);
  sort_by_bus(machine.nics);
}

}  // namespace trireme::topology
