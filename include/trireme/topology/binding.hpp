// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/topology/machine.hpp"

#include <span>
#include <string>
#include <vector>

namespace trireme::topology {

/// Cores and memory of one local rank.
struct BindingSlot {
  int local_rank = 0;
  CpuSet pus;                    ///< mask: every allowed hardware thread of its cores
  std::vector<int> compute_pus;  ///< one per compute thread; their number is the thread count
  std::vector<int> numa_nodes;   ///< indices of the nodes that its cores belong to
  bool shared = false;           ///< true if other ranks compute on the same cores
  std::string reason;            ///< reason of the choice, for people
};

struct BindingPlan {
  std::vector<BindingSlot> slots;     ///< by local rank
  std::vector<std::string> notes;     ///< unused cores and GPUs, and why
  std::vector<std::string> warnings;  ///< causes of slowness, and remedies
};

/// Whole cores for each local rank, as near to one memory as that goes (docs/topology.md):
/// every rank gets the same number of cores; ranks are spread evenly over NUMA nodes and
/// consecutive ranks are neighbours; a rank's cores stay inside one NUMA node, else inside one
/// package, as long as that leaves it at least three quarters of an even share; on hybrid
/// machines only the fastest cores are used while they suffice for one each. More ranks than
/// cores share the cores of a NUMA node, with a warning. Fails without allowed cores and for
/// local_ranks below 1.
base::Result<BindingPlan> plan_binding(const Machine& machine, int local_ranks);

/// Plan where the launcher has already given each local rank a mask of its own (srun --cpu-bind,
/// mpirun --bind-to): equal masks are planned within; masks that differ are kept as they are.
/// `masks` is by local rank.
base::Result<BindingPlan> plan_binding(const Machine& machine, std::span<const CpuSet> masks);

/// Binds this process, with all threads that it has, to slot.pus through hwloc. To be called
/// before compute threads start; they inherit the mask. Fails (ExitCode::topology) when the
/// system refuses.
base::Status apply(const BindingSlot& slot);

}  // namespace trireme::topology
