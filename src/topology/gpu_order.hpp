// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/topology/binding.hpp"

#include <vector>

namespace trireme::topology {

/// Indices of all GPUs such that neighbours in the list are near each other: those of one package
/// together, in it those of one NUMA node, in it those of one switch; each by its first in PCI bus
/// order.
std::vector<int> neighbourly_gpus(const Machine& machine);

/// A GPU for each of `ranks` ranks, spread evenly over that list; several ranks share one where
/// there are more ranks than GPUs.
std::vector<int> deal_gpus(const Machine& machine, int ranks);

/// GPUs for ranks whose CPUs are fixed: each rank in turn takes the nearest of the GPUs least used
/// so far.
std::vector<int> gpus_near_slots(const Machine& machine, const std::vector<BindingSlot>& slots);

}  // namespace trireme::topology
