#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/config/config.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/runtime/cluster.hpp"

#include <functional>
#include <memory>

namespace trireme::train {

/// Compute threads of this rank: numerics.threads, else OMP_NUM_THREADS, else an even share of
/// the cores that this process may use among the ranks of the node, at least one.
int compute_threads(const config::Config& config, const base::Environment& environment,
                    const comm::MpiRuntime& mpi);

/// The backend of `numerics.backend`, with that many threads.
base::Result<std::unique_ptr<device::Kernels>> make_kernels(const config::Config& config,
                                                            int threads);

/// What a command computes with once its ranks have found each other.
struct Session {
  runtime::Cluster cluster;
  std::unique_ptr<device::Kernels> kernels;
};

/// Starts MPI, agrees with all ranks on the configuration, forms the mesh that it asks for, and
/// runs `body`. What nobody catches ends all ranks with one text.
base::ExitCode run_on_mesh(const config::Config& config, const base::Environment& environment,
                           const std::function<base::ExitCode(Session&)>& body);

}  // namespace trireme::train
