#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/config/config.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/runtime/cluster.hpp"

#include <filesystem>
#include <functional>
#include <memory>

namespace trireme::train {

/// The backend of `numerics.backend`: with the binding's threads unless `numerics.threads` says
/// otherwise, or on its card.
base::Result<std::unique_ptr<device::Kernels>> make_kernels(const config::Config& config,
                                                            const runtime::Binding& binding);

/// What a command computes with once its ranks have found each other.
struct Session {
  /// Outlives the cluster, whose groups may move its device's tensors.
  std::unique_ptr<device::Kernels> kernels;
  runtime::Cluster cluster;
  /// To be called once the run directory is this start's own: from then on a failure leaves
  /// failure.json there, and the node's plugin its records.
  std::function<void()> run_is_open = [] {};
};

/// Where a run that fails leaves failure.json and its last line.
struct Failures {
  /// Empty for commands that have no run: their last line goes to stderr alone. So does that of a
  /// start which fails before Session::run_is_open.
  std::filesystem::path run_directory;
};

/// RUN/log/r0003.txt
std::filesystem::path rank_log(const std::filesystem::path& run, base::Rank rank);

/// Starts MPI, agrees with all ranks on the configuration, forms the mesh that it asks for, and
/// runs `body`. What nobody catches ends all ranks with one text.
base::ExitCode run_on_mesh(const config::Config& config, const base::Environment& environment,
                           const Failures& failures,
                           const std::function<base::ExitCode(Session&)>& body);

}  // namespace trireme::train
