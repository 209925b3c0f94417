#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/result.hpp"
#include "trireme/comm/mpi_runtime.hpp"

#include <optional>
#include <string>

namespace trireme::runtime {

/// What started this process, as its environment tells.
enum class Launcher {
  none,            ///< a plain process
  mpirun,          ///< Open MPI's mpirun
  srun,            ///< a step of Slurm
  process_manager  ///< another one that speaks PMI or PMIx
};
/// "no launcher", "mpirun", "srun", "a process manager".
const char* name(Launcher launcher);

struct Identity {
  Launcher launcher = Launcher::none;
  /// How many tasks the launcher says that it started; none when it does not say.
  std::optional<int> announced_tasks;
  /// Which of them this is.
  std::optional<int> announced_rank;
  /// Slurm's job and step, "1234.0"; empty outside of one.
  std::string job;
};

/// Malformed numbers in the environment are failures (ExitCode::launch).
base::Result<Identity> identify(const base::Environment& environment);

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
