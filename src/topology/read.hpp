// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/topology/machine.hpp"

#include <hwloc.h>

namespace trireme::topology {

/// Packages, NUMA nodes, core kinds, cores, caches, the allowed set.
void read_processors(hwloc_topology_t topology, Machine& machine);

/// PCI bridges, GPUs and NICs. After read_processors().
void read_devices(hwloc_topology_t topology, Machine& machine);

/// Processors and devices together.
Machine read_machine(hwloc_topology_t topology);

/// Hardware threads of the machine that are in `set` (which may be infinite).
CpuSet pus_in(const Machine& machine, hwloc_const_bitmap_t set);

/// The value of an hwloc info without the blanks that firmware pads it with; empty when absent.
std::string info_of(hwloc_obj_t object, const char* name);

}  // namespace trireme::topology
