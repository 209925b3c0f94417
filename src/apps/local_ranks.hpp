// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/exit_code.hpp"
#include "trireme/base/result.hpp"

#include <string>
#include <vector>

namespace trireme::apps {

/// Permission of this process to start `ranks` ranks by itself: refused when a launcher has started
/// it, and inside of a Slurm job, where srun starts steps (ExitCode::launch).
base::Status may_start_ranks(int ranks, const base::Environment& environment);

/// "--ranks N" and "--ranks=N" left out.
std::vector<std::string> without_ranks_option(const std::vector<std::string>& arguments);

/// Starts this program on `ranks` ranks of this node with Open MPI's mpirun and waits for their
/// end. Binding to cores is left to the ranks; there may be more ranks than cores. The first
/// SIGINT, SIGTERM or SIGUSR1 makes the ranks stop in good order, a second ends them. Returns
/// mpirun's exit code: the code of the first rank that failed, 128 + signal for a killed one
/// (docs/decisions/0030).
base::ExitCode start_ranks(int ranks, const std::vector<std::string>& arguments,
                           const base::Environment& environment);

}  // namespace trireme::apps
