#pragma once

#include "trireme/topology/placement.hpp"

#include <vector>

namespace trireme::topology {

/// Gives each slot the nearest of fabric_nics(): near its GPU, or its CPUs where it has none. Among
/// equally near cards the least used is taken, and cards that nobody took go to the ranks to which
/// they are as near as what those have.
void share_nics(const Machine& machine, std::vector<PlacementSlot>& slots);

}  // namespace trireme::topology
