// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/topology/binding.hpp"
#include "trireme/topology/machine.hpp"

#include <span>
#include <string>
#include <vector>

/// Placement of each local rank of a node: its GPU, CPUs and NICs.
namespace trireme::topology {

/// Use of GPUs by ranks; on a machine without GPUs, `none` in effect.
enum class GpuUse { none, one_each };

struct PlacementSlot {
  BindingSlot cpus;  ///< with its own reason
  int gpu = -1;      ///< index into Machine::gpus; -1 for a rank without one
  std::string gpu_reason;
  std::vector<int> nics;  ///< indices into Machine::nics, ascending; empty without a fabric
  std::string nic_reason;
};

struct Placement {
  std::vector<PlacementSlot> slots;   ///< by local rank
  std::vector<std::string> notes;     ///< unused devices, and why
  std::vector<std::string> warnings;  ///< causes of slowness, and remedies
};

/// The place of each local rank (docs/topology.md). With GPUs: they are put in an order in which
/// neighbours share package, NUMA node and switch, and dealt out evenly over it; each rank gets
/// whole cores near its GPU, as many as every other rank. Without: plan_binding(). Either way the
/// nearest NICs of the fabric, shared out so that each is used. Nothing is derived from the
/// number of a rank alone: NUMA nodes and GPUs may be numbered in any way.
/// Fails as plan_binding() does.
base::Result<Placement> place_ranks(const Machine& machine, int local_ranks, GpuUse use);

/// Placement where the launcher has already given each local rank a mask of its own: equal masks
/// are placed within; with masks that differ, each rank takes the free GPU nearest to its mask.
base::Result<Placement> place_ranks(const Machine& machine, std::span<const CpuSet> masks,
                                    GpuUse use);

/// The machine as if it had only the GPUs with these PCI bus ids (CUDA_VISIBLE_DEVICES and cgroups
/// leave a process fewer than there are). Fails (ExitCode::topology) for one that it has not.
base::Result<Machine> with_gpus(Machine machine, std::span<const std::string> bus_ids);

}  // namespace trireme::topology
