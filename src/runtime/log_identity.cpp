// SPDX-License-Identifier: Apache-2.0
// In a file of its own: the launcher's identity is also read by programs without MPI.
#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/runtime/identity.hpp"

namespace trireme::runtime {

base::log::Identity log_identity(const base::Result<Identity>& identity,
                                 const comm::MpiRuntime& mpi) {
  const bool alone = identity.ok() && mpi.world_size() == 1 && !check_world(*identity, 1).ok();
  if (!alone) return {mpi.world_rank().value(), mpi.world_size(), mpi.node_name()};
  const int task = is_inherited(*identity) ? 0 : identity->announced_rank.value_or(0);
  return {task, *identity->announced_tasks, mpi.node_name()};
}

}  // namespace trireme::runtime
