// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/identity.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

namespace trireme::runtime {
namespace {

std::string how_to_start(const Identity& identity) {
  switch (identity.launcher) {
    case Launcher::srun:
      return "start with srun --mpi=pmix (srun --mpi=list shows what this Slurm offers)";
    case Launcher::mpirun:
      return "use the mpirun of the MPI library that trireme was built with (trireme --version "
             "names it)";
    case Launcher::process_manager:
    case Launcher::none:
      break;
  }
  return "start with mpirun -n N or srun --mpi=pmix -n N";
}

}  // namespace

base::Status check_world(const Identity& identity, int world_size) {
  if (!identity.announced_tasks || *identity.announced_tasks == world_size) return {};
  const int tasks = *identity.announced_tasks;
  if (world_size == 1) {
    return base::Failure{
        base::ExitCode::launch,
        base::format("{} started {} tasks, but MPI sees a world of 1 (each task would train "
                     "alone, over the others' files); {}",
                     name(identity.launcher), tasks, how_to_start(identity))};
  }
  return base::Failure{
      base::ExitCode::launch,
      base::format("{} started {} tasks, but MPI sees {} ranks (the mesh would "
                   "not be the one asked for); {}",
                   name(identity.launcher), tasks, world_size, how_to_start(identity))};
}

void die_with_slurmstepd(const Identity& identity) {
  if (identity.launcher != Launcher::srun) return;
  const auto parent = ::getppid();
  const auto name = base::read_text_file(base::format("/proc/{}/comm", parent));
  // A task that runs a user's script has the script, not slurmstepd, as its parent.
  if (!name.ok() || *name != "slurmstepd\n") return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the prctl.
  if (::getppid() != parent) std::raise(SIGKILL);
}

}  // namespace trireme::runtime
