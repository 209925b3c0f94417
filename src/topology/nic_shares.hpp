// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/topology/placement.hpp"

#include <vector>

namespace trireme::topology {

/// Gives each slot the nearest of fabric_nics(): near its GPU, or its CPUs where it has none. Of
/// equally near NICs the least used is taken, and unused NICs go to the ranks to which they are as
/// near as the NICs that those have.
void share_nics(const Machine& machine, std::vector<PlacementSlot>& slots);

}  // namespace trireme::topology
