// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/comm/nccl.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/runtime/cluster.hpp"
#include "trireme/runtime/device_groups.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

/// Start of a command, from a launched process to ranks with kernels and process groups.
namespace trireme::runtime {

/// Choice of the kernels of a rank.
struct ComputeOptions {
  enum class Backend { cpu, reference, cuda };
  Backend backend = Backend::cpu;
  /// Threads of the CPU backend; by default those of the rank's binding.
  std::optional<int> threads = {};
  device::Tiling tiling = device::Tiling::for_threads;
  /// Attention of the CUDA backend.
  device::AttentionChoice attention = {};

  topology::GpuUse gpus() const {
    return backend == Backend::cuda ? topology::GpuUse::one_each : topology::GpuUse::none;
  }
};

/// The kernels of one rank: with its binding's threads, or on its binding's GPU.
base::Result<std::unique_ptr<device::Kernels>> make_kernels(const ComputeOptions& options,
                                                            const Binding& binding);

struct SessionOptions {
  /// `gpus` and `visible_gpus` are filled in at the start.
  JoinOptions join;
  ComputeOptions compute;
  DeviceGroups device_groups = DeviceGroups::automatic;
  RdmaRule rdma = RdmaRule::automatic;
  comm::NcclRegistration registration = comm::NcclRegistration::buffers;
  /// Longest wait for all ranks to appear.
  double start_timeout_seconds = 600;
  /// Digest of the configuration, which must be the same on all ranks.
  std::uint64_t configuration = 0;
  /// Directory in which a failed run leaves failure.json and its last line. Empty for commands that
  /// have no run: their last line goes to stderr only, as does that of a start which fails before
  /// Session::run_is_open, and they log worlds and backends only with -v.
  std::filesystem::path run_directory = {};
};

/// Cluster and kernels of a command whose ranks have formed the mesh.
struct Session {
  /// Outlives the cluster, whose groups may move its device's tensors.
  std::unique_ptr<device::Kernels> kernels;
  Cluster cluster;
  /// Function to be called once the run directory is this start's own: from then on a failure
  /// leaves failure.json there, and the node's plugin its records.
  std::function<void()> run_is_open = [] {};

  /// Starts MPI, agrees with all ranks on the configuration, forms the mesh, makes kernels and
  /// groups, and runs `body`. An uncaught exception ends all ranks with one text. The exit code is
  /// the body's, or the failure's.
  static base::ExitCode start(const SessionOptions& options, const base::Environment& environment,
                              const std::function<base::ExitCode(Session&)>& body);
};

/// First part of start(), for commands that measure MPI and the network: starts MPI, refuses silent
/// singletons, and runs `body`, with NCCL's log where ranks use GPUs (null elsewhere).
base::ExitCode run_on_ranks(
    const base::Environment& environment, topology::GpuUse gpus,
    const std::function<base::ExitCode(comm::MpiRuntime&, const comm::NcclLog*)>& body);

/// Folder of this user's reusable data (XDG Base Directory Specification): XDG_CACHE_HOME/trireme,
/// else HOME/.cache/trireme; empty without either.
std::filesystem::path cache_folder(const base::Environment& environment);

}  // namespace trireme::runtime
