// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/machine.hpp"
#include "trireme/predict/workload.hpp"

#include "collective.hpp"
#include "operation_costs.hpp"

/// Sizes that a step's simulation and its bound take alike. Private to the room.
namespace trireme::predict {

/// Cores of one node run `world_size` ranks.
struct CoreUse {
  double node_share = 1;
  /// Cores that ranks share; 0: every rank has its own.
  int cores = 0;
};

inline CoreUse core_use(const Machine& machine, int world_size) {
  if (!machine.node.computes_on_cores()) return {};
  const int cores = machine.node.cores;
  if (world_size <= cores) return {1.0 / world_size, 0};
  return {1.0 / cores, cores};
}

/// Sum of the norms of all ranks' gradients.
inline Time norm_time(const Links& links, const Placement& placement, int world_size) {
  constexpr double bytes = 8;
  return links.collective(CollectiveKind::all_reduce, bytes, placement.group(world_size, 1));
}

/// Bytes of a message between stages, a rank's part of it.
inline double message_bytes(const Workload& workload, const OperationCosts& costs) {
  const auto& shape = workload.shape;
  const double parts = workload.program.sequence_parallel ? workload.degrees.tensor : 1;
  return costs.element_bytes() *
         static_cast<double>(workload.micro_batches.sequences * shape.sequence * shape.hidden) /
         workload.degrees.context / parts;
}

/// Whether weights are divided, and units of them take turns in a ring.
inline bool has_ring(const Workload& workload) {
  return workload.program.sharding == Sharding::parameters && workload.program.gathers_into_ring &&
         workload.degrees.data * workload.degrees.context > 1;
}

/// Whether each unit takes all micro-batches before the next.
inline bool is_breadth_first(const Workload& workload) {
  return has_ring(workload) && workload.degrees.pipeline == 1;
}

}  // namespace trireme::predict
