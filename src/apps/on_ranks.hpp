#pragma once

#include "trireme/comm/mpi_runtime.hpp"

#include "apps/command.hpp"

#include <functional>

namespace trireme::apps {

/// For commands that need ranks but no model: starts MPI, refuses a silent singleton, and runs
/// `body`; what nobody catches ends all ranks with one text.
base::ExitCode run_on_ranks(Context& context,
                            const std::function<base::ExitCode(comm::MpiRuntime&)>& body);

}  // namespace trireme::apps
