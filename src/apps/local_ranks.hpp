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

/// How ranks that this process started have ended.
struct RanksEnd {
  base::ExitCode code = base::ExitCode::done;
  /// Signal that ended the first rank that failed, or mpirun itself; 0 when it exited.
  int signal = 0;
};

/// Starts this program on `ranks` ranks of this node with Open MPI's mpirun and waits for their
/// end. Binding to cores is left to the ranks; there may be more ranks than cores. The first
/// SIGINT, SIGTERM or SIGUSR1 makes the ranks stop in good order, a second ends them. The code is
/// that of the first rank that failed, ExitCode::peer where a signal ended it. Throws Error
/// (ExitCode::launch) where mpirun could not start them (docs/decisions/0030).
RanksEnd start_ranks(int ranks, const std::vector<std::string>& arguments,
                     const base::Environment& environment);

}  // namespace trireme::apps
