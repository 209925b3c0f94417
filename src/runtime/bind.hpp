// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/runtime/cluster.hpp"

namespace trireme::runtime {

/// Collective over the world. Discovers the node, gives each local rank its cores, and binds
/// this one. Before compute threads start: they inherit the mask.
Binding bind_ranks(comm::MpiRuntime& mpi, comm::ProcessGroup& world, const JoinOptions& options,
                   const base::Environment& environment);

/// OMP_NUM_THREADS, or `bound` when it is not set; a list "4,2" counts by its first number.
base::Result<int> thread_count(const base::Environment& environment, int bound);

/// Waiting of compute threads for work: by GOMP_SPINCOUNT, else OMP_WAIT_POLICY, with the meaning
/// that OpenMP libraries give them; a short spin when neither is set.
base::Result<device::ThreadWait> thread_wait(const base::Environment& environment);

}  // namespace trireme::runtime
