#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/runtime/launcher_environment.hpp"
#include "trireme/topology/placement.hpp"

#include <optional>
#include <string>
#include <vector>

namespace trireme::runtime {

struct NetworkExport {
  std::string variable;
  std::string value;
  bool operator==(const NetworkExport&) const = default;
};

/// What tells UCX and NCCL which network cards to use (docs/decisions/0021): UCX_NET_DEVICES the
/// rank's own nearest, NCCL_IB_HCA those of all ranks of the node, because NCCL pairs cards by
/// their place in the list and finds the nearest itself. Only cards with RDMA, a verbs name and a
/// port that is up; nothing where there is none. What the user has set is left out.
std::vector<NetworkExport> network_exports(const topology::Machine& machine,
                                           const topology::Placement& placement, int local_rank,
                                           const base::Environment& environment);

/// Cards that do RDMA and whose port is up, or is not known to be down where a fabric has no verbs
/// names: "mlx5_0:1", "hsn0".
std::vector<std::string> rdma_cards(const topology::Machine& machine);

/// Sets them in this process, before MPI starts, which reads them: only for a job on several nodes
/// whose launcher tells each task its place on its node. Returns what was set and why in a
/// sentence; empty when nothing was.
std::string export_network(const base::Environment& environment, topology::GpuUse use);

}  // namespace trireme::runtime
