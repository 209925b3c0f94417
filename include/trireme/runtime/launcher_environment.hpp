// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/result.hpp"
#include "trireme/layout/rank_order.hpp"

#include <cstdint>
#include <optional>
#include <string>

/// Variables that launchers (Slurm, Open MPI's mpirun, others of PMI and PMIx) put into a task's
/// environment. Only this header's functions read them.
namespace trireme::runtime {

/// Launcher of this process, from its environment.
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
  /// Number of tasks that the launcher announces; none when it does not.
  std::optional<int> announced_tasks;
  /// This task's number among them.
  std::optional<int> announced_rank;
  /// Slurm's job and step, "1234.0"; empty outside of one.
  std::string job;
};

/// Malformed numbers in the environment are failures (ExitCode::launch).
base::Result<Identity> identify(const base::Environment& environment);

/// The tasks of this node and this one's number among them, as Slurm or Open MPI announce them; and
/// whether there are other nodes.
struct NodeShare {
  int local_rank = 0;
  int local_ranks = 0;
  bool several_nodes = false;
};
std::optional<NodeShare> announced_share(const base::Environment& environment);

/// Switches above this node, from the root down, from the variables of Slurm's topology plugins
/// (SLURM_TOPOLOGY_ADDR "core.rack2.n17", SLURM_TOPOLOGY_ADDR_PATTERN "switch.switch.node"); empty
/// where they are missing or inconsistent.
layout::NetworkPath switches_above(const base::Environment& environment);

/// Slurm's job number, digits alone; none outside of a job.
std::optional<std::string> job_number(const base::Environment& environment);
/// Number of srun's step, in an interactive step the one that Slurm reserves for it
/// (SLURM_INTERACTIVE_STEP); none outside of steps, and in batch scripts.
std::optional<std::uint32_t> step_number(const base::Environment& environment);

/// End of the job's time limit, in seconds since 1970, as announced at its start; none where it was
/// not announced.
std::optional<std::int64_t> job_end(const base::Environment& environment);

/// True if tasks were distributed otherwise than block by block (srun --distribution).
bool dealt_by_hand(const base::Environment& environment);

}  // namespace trireme::runtime
