// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/log.hpp"
#include "trireme/base/result.hpp"
#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/runtime/launcher_environment.hpp"

namespace trireme::runtime {

/// Refuses a silent singleton (N tasks each of which has a world of one) and any other difference
/// between the launcher's announcement and MPI's world; the failure (ExitCode::launch) states how
/// to start instead.
base::Status check_world(const Identity& identity, int world_size);

/// Refuses tasks of srun that have no PMI or PMIx to meet by (ExitCode::launch): MPI_Init would end
/// each with a page about how MPI was built. To be asked before MPI starts.
base::Status check_process_manager(const Identity& identity, const base::Environment& environment);

/// True if the launcher whose variables this process has did not start it: no program of mpirun or
/// of Slurm is among its ancestors, so that it is alone whatever rank the variables name. False for
/// process managers, whose programs are not all known. Reads a few small files of /proc.
bool is_inherited(const Identity& identity);

/// True also where the launcher is a process manager of which no known program is an ancestor: it
/// may be one that is not known.
bool may_be_inherited(const Identity& identity);

/// Identity in log lines: the rank. Where every task has a world of its own, the task, so that one
/// of them logs for all; the first one where that task's number is inherited.
base::log::Identity log_identity(const base::Result<Identity>& identity,
                                 const comm::MpiRuntime& mpi);

/// Makes the kernel kill this process when its parent is a slurmstepd that dies: nothing would
/// supervise a task of srun that outlives it. To be called on the first thread, once.
void die_with_slurmstepd(const Identity& identity);

}  // namespace trireme::runtime
