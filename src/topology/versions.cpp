// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/versions.hpp"

#include "trireme/base/format.hpp"

#include <hwloc.h>

namespace trireme::topology {

std::vector<base::LibraryVersion> library_versions() {
  // 0x00020900 is 2.9.0: hwloc numbers its interface, not each release.
  const unsigned version = hwloc_get_api_version();
  return {{"hwloc",
           base::format("interface {}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff)}};
}

}  // namespace trireme::topology
