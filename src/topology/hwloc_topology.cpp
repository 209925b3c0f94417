// SPDX-License-Identifier: Apache-2.0
#include "hwloc_topology.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <array>
#include <cerrno>
#include <cstring>

namespace trireme::topology {
namespace {

base::Failure topology_failure(std::string text) {
  return {base::ExitCode::topology, std::move(text)};
}

base::Result<HwlocTopology> make_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    return topology_failure(base::format("hwloc does not start: {}", std::strerror(errno)));
  }
  return HwlocTopology::adopt(raw);
}

/// Objects that every topology keeps: caches and groups relate neighbouring cores, and I/O objects
/// relate devices to cores.
bool configure(hwloc_topology_t topology, Detail detail) {
  // Flag: cores that a cgroup forbids stay visible, so that the tree can show which are not
  // allowed.
  if (hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0) return false;
  const auto io =
      detail == Detail::everything ? HWLOC_TYPE_FILTER_KEEP_IMPORTANT : HWLOC_TYPE_FILTER_KEEP_NONE;
  return hwloc_topology_set_io_types_filter(topology, io) == 0;
}

/// Disables the GPU libraries' own backends: they would start their drivers in every rank, before
/// it is decided which rank uses which GPU, and PCI gives all that is needed.
void leave_out_drivers(hwloc_topology_t topology) {
  constexpr std::array components{"cuda", "nvml", "rsmi", "levelzero", "opencl", "gl"};
  for (const char* component : components) {
    // Fails for a component that this hwloc does not have, which is as good.
    static_cast<void>(hwloc_topology_set_components(
        topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component));
  }
}

}  // namespace

HwlocBitmap make_bitmap() {
  auto bitmap = HwlocBitmap::adopt(hwloc_bitmap_alloc());
  if (!bitmap) throw base::Error(base::ExitCode::topology, "no memory for a set of CPUs");
  return bitmap;
}

base::Result<HwlocTopology> load_this_machine(Detail detail) {
  auto made = make_topology();
  if (!made.ok()) return made;
  leave_out_drivers(made->get());
  if (!configure(made->get(), detail) || hwloc_topology_load(made->get()) != 0) {
    return topology_failure(base::format(
        "hwloc cannot read this machine ({}); check that /proc and /sys are mounted, and that "
        "lstopo works",
        std::strerror(errno)));
  }
  return made;
}

base::Result<HwlocTopology> load_xml(std::string_view xml, std::string_view source) {
  auto made = make_topology();
  if (!made.ok()) return made;
  const std::string terminated(xml);
  const auto size = static_cast<int>(terminated.size() + 1);  // hwloc counts the final zero
  if (hwloc_topology_set_xmlbuffer(made->get(), terminated.c_str(), size) != 0 ||
      !configure(made->get(), Detail::everything) || hwloc_topology_load(made->get()) != 0) {
    return topology_failure(
        base::format("{} is not a machine that hwloc can load; record it again with 'lstopo "
                     "machine.xml'",
                     source));
  }
  return made;
}

}  // namespace trireme::topology
