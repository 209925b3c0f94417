// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/log.hpp"
#include "trireme/base/result.hpp"
#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/runtime/launcher_environment.hpp"

namespace trireme::runtime {

/// Refuses a silent singleton (N tasks of which each sees a world of one) and any other
/// difference between what the launcher announced and what MPI sees; the failure
/// (ExitCode::launch) says how to start instead.
base::Status check_world(const Identity& identity, int world_size);

/// Who speaks in the log: the rank. Where every task sees a world of its own, the task, so that one
/// of them speaks for all.
base::log::Identity log_identity(const base::Result<Identity>& identity,
                                 const comm::MpiRuntime& mpi);

/// A task of srun that outlived the slurmstepd which looks after it would be nobody's: from now on
/// this process is killed when its own parent is a slurmstepd that dies. On the first thread, once.
void die_with_slurmstepd(const Identity& identity);

}  // namespace trireme::runtime
