// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/mesh.hpp"

#include <string>
#include <vector>

/// Mapping of launched processes to ranks of the mesh that places ranks with much traffic near each
/// other.
namespace trireme::layout {

/// Location of a process: the switches above its node, from the root of the network down, then the
/// node itself. Nodes in one list may lie at different depths.
using NetworkPath = std::vector<std::string>;

/// Distance between two processes: 0 on one node, else the number of switch levels up to the lowest
/// one above both (1: the same leaf switch); one more than the deeper path where they share none.
int network_distance(const NetworkPath& one, const NetworkPath& other);

/// Cost of an arrangement: sums of network distances between neighbours, of rings (closed) and of
/// pipelines (open), by axis. Compared from the innermost of all_axes on: tensor parallelism
/// communicates in every layer, context parallelism in every attention, data parallelism moves
/// every gradient, pipelines pass activations.
struct NetworkCost {
  std::array<int, axis_count> innermost_first{};

  int on(Axis axis) const {
    return innermost_first[axis_count - 1 - static_cast<std::size_t>(axis)];
  }
  auto operator<=>(const NetworkCost&) const = default;
};

/// `launched[r]` is the process that is rank r of the mesh; `paths` is by process.
NetworkCost network_cost(const Mesh& mesh, const std::vector<NetworkPath>& paths,
                         const std::vector<int>& launched);

struct RankOrder {
  std::vector<int> launched;  ///< by rank of the mesh: the launcher's number of the process
  NetworkCost as_launched;
  NetworkCost cost;  ///< cost of this order; equal to as_launched where nothing was changed
  bool changed() const;
};

/// Packs tensor-parallel groups into nodes, then rings of data parallelism into leaf switches, then
/// into the switches above, and orders the stages along the network's tree (docs/topology.md).
/// Groups that do not fill a node or a switch are joined at the lowest vertex above. Processes of
/// one node stay in the launcher's order, process 0 stays rank 0, and where the launcher's own
/// order costs no more, it is kept. `paths` is by process; as many as the mesh has ranks.
RankOrder order_ranks(const Mesh& mesh, const std::vector<NetworkPath>& paths);

}  // namespace trireme::layout
