// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/identity.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

struct Process {
  std::string name;
  pid_t parent = 0;
};

/// Process of that number, from proc(5): "17 (name) S 16 ...", where the name may hold anything.
std::optional<Process> process_of(pid_t number) {
  const auto stat = base::read_text_file(base::format("/proc/{}/stat", number));
  if (!stat.ok()) return std::nullopt;
  const auto open = stat->find('(');
  const auto close = stat->rfind(')');
  constexpr std::size_t parent_offset = 4;
  if (open >= close || close == std::string::npos || stat->size() < close + parent_offset) {
    return std::nullopt;
  }
  Process process{stat->substr(open + 1, close - open - 1), 0};
  const auto* const end = stat->data() + stat->size();
  const auto parsed = std::from_chars(stat->data() + close + parent_offset, end, process.parent);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return process;
}

/// Programs of a launcher that start its tasks on a node. Of process managers they are those of
/// MPICH, PRRTE, Flux and PALS.
std::vector<std::string_view> starters(Launcher launcher) {
  switch (launcher) {
    case Launcher::mpirun:
      return {"orted", "mpirun", "mpiexec", "orterun", "prted", "prterun", "prte"};
    case Launcher::srun:
      return {"slurmstepd"};
    case Launcher::process_manager:
      return {"hydra_pmi_proxy", "pmi_proxy", "mpiexec.hydra", "mpiexec",    "mpirun",     "orted",
              "prted",           "prterun",   "prte",          "slurmstepd", "flux-shell", "palsd"};
    case Launcher::none:
      break;
  }
  return {};
}

}  // namespace

bool is_inherited(const Identity& identity) {
  return identity.launcher != Launcher::process_manager && may_be_inherited(identity);
}

bool may_be_inherited(const Identity& identity) {
  const auto names = starters(identity.launcher);
  if (names.empty()) return false;
  constexpr int most_ancestors = 64;
  auto number = ::getppid();
  for (int generation = 0; generation < most_ancestors && number > 0; ++generation) {
    const auto process = process_of(number);
    if (!process) return true;
    if (std::find(names.begin(), names.end(), process->name) != names.end()) return false;
    number = process->parent;
  }
  return true;
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

base::Status check_process_manager(const Identity& identity, const base::Environment& environment) {
  if (identity.launcher != Launcher::srun) return {};
  for (const auto* variable : {"PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD"}) {
    if (environment.has(variable)) return {};
  }
  return base::Failure{
      base::ExitCode::launch,
      base::format("srun started {} without a process manager for MPI, as srun --mpi=none does "
                   "(MPI cannot start so); {}",
                   base::counted(identity.announced_tasks.value_or(1), "task"),
                   how_to_start(identity))};
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
