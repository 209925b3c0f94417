// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/handle.hpp"

#include <hwloc.h>

#include <optional>
#include <string>
#include <string_view>

namespace trireme::topology {

struct HwlocTopologyTraits {
  using raw_type = hwloc_topology_t;
  static raw_type null() { return nullptr; }
  static const char* name() { return "hwloc topology"; }
  static std::optional<std::string> close(raw_type topology) {
    hwloc_topology_destroy(topology);
    return std::nullopt;
  }
};
using HwlocTopology = base::UniqueHandle<HwlocTopologyTraits>;

struct HwlocBitmapTraits {
  using raw_type = hwloc_bitmap_t;
  static raw_type null() { return nullptr; }
  static const char* name() { return "hwloc bitmap"; }
  static std::optional<std::string> close(raw_type bitmap) {
    hwloc_bitmap_free(bitmap);
    return std::nullopt;
  }
};
using HwlocBitmap = base::UniqueHandle<HwlocBitmapTraits>;

/// An empty set; throws base::Error when memory is out.
HwlocBitmap make_bitmap();

enum class Detail {
  everything,  ///< with caches and PCI devices
  cpus_only,   ///< enough to bind
};

/// The machine that this process runs on.
base::Result<HwlocTopology> load_this_machine(Detail detail);

/// A recorded machine. The text must have passed check_xml().
base::Result<HwlocTopology> load_xml(std::string_view xml, std::string_view source);

}  // namespace trireme::topology
