#include "trireme/runtime/identity.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <csignal>

namespace trireme::runtime {
namespace {

using base::Environment;

base::Result<std::optional<int>> number(const Environment& environment, const char* variable) {
  const auto text = environment.get(variable);
  if (!text) return std::optional<int>{};
  int value = 0;
  const auto* const end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end || value < 0) {
    return base::Failure{base::ExitCode::launch,
                         base::format("{}={} is no number of tasks or ranks (the launcher sets "
                                      "it); unset it, or start through the launcher",
                                      variable, *text)};
  }
  return std::optional<int>{value};
}

struct Signs {
  Launcher launcher;
  /// Present only when this launcher started the process.
  const char* presence;
  const char* tasks;
  const char* rank;
};

/// The innermost launcher first: mpirun inside a Slurm step is mpirun. A batch script has
/// SLURM_NTASKS and SLURM_PROCID too, but only srun sets the size of a step.
constexpr Signs known_launchers[] = {
    {Launcher::mpirun, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {Launcher::srun, "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
    {Launcher::process_manager, "PMI_SIZE", "PMI_SIZE", "PMI_RANK"},
    {Launcher::process_manager, "PMIX_RANK", nullptr, "PMIX_RANK"},
};

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

const char* name(Launcher launcher) {
  switch (launcher) {
    case Launcher::none:
      return "no launcher";
    case Launcher::mpirun:
      return "mpirun";
    case Launcher::srun:
      return "srun";
    case Launcher::process_manager:
      return "a process manager";
  }
  return "?";
}

base::Result<Identity> identify(const Environment& environment) {
  Identity identity;
  if (const auto job = environment.get("SLURM_JOB_ID")) {
    identity.job = *job;
    if (const auto step = environment.get("SLURM_STEP_ID")) identity.job += "." + *step;
  }
  for (const auto& signs : known_launchers) {
    if (!environment.has(signs.presence)) continue;
    identity.launcher = signs.launcher;
    if (signs.tasks != nullptr) {
      const auto tasks = number(environment, signs.tasks);
      if (!tasks.ok()) return tasks.failure();
      identity.announced_tasks = *tasks;
    }
    const auto rank = number(environment, signs.rank);
    if (!rank.ok()) return rank.failure();
    identity.announced_rank = *rank;
    break;
  }
  return identity;
}

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
  // Behind a script of the user's, the script is the task.
  if (!name.ok() || *name != "slurmstepd\n") return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have died before.
  if (::getppid() != parent) std::raise(SIGKILL);
}

}  // namespace trireme::runtime
