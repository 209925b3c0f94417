// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/topology/placement.hpp"

#include <optional>
#include <string>
#include <vector>

/// Variables that libraries of GPUs and networks (CUDA, NCCL, UCX) read from the process's
/// environment: one list of all that a start sets.
namespace trireme::runtime {

struct EnvironmentSetting {
  std::string variable;
  std::string value;
  /// Reason of this value, for people.
  std::string reason;
};

struct LibraryEnvironment {
  std::vector<EnvironmentSetting> settings;
  /// Warnings about harmful values that the user has set, with the remedy. The values stay.
  std::vector<std::string> warnings;
};

/// NICs that UCX and NCCL use (docs/decisions/0021): UCX_NET_DEVICES the rank's own nearest,
/// NCCL_IB_HCA those of all ranks of the node, because NCCL pairs NICs by their place in the list
/// and finds the nearest itself. Only NICs with RDMA, a verbs name and a port that is up; no
/// variables where there is none. Variables that the user has set are left out.
std::vector<EnvironmentSetting> network_settings(const topology::Machine& machine,
                                                 const topology::Placement& placement,
                                                 int local_rank,
                                                 const base::Environment& environment);

/// NICs that do RDMA and whose port is up, or is not known to be down where a fabric has no verbs
/// names: "mlx5_0:1", "hsn0".
std::vector<std::string> rdma_nics(const topology::Machine& machine);

/// Streams of CUDA that a rank may have work on at once: its kernels', that of all ranks, of
/// tensor, pipeline and data parallelism and of tied embeddings, and one for each direction of
/// messages with two neighbours.
inline constexpr int streams_of_rank = 10;

/// CUDA_DEVICE_MAX_CONNECTIONS (docs/decisions/0025): the maximum of CUDA's queues, because streams
/// that share one wait for each other. A value of the user's stays, with a warning where it is too
/// small or not valid for CUDA.
LibraryEnvironment queue_settings(const base::Environment& environment);

/// All settings for this rank. NICs and network plugins only for a job on several nodes whose
/// launcher gives each task its place on its node; queues only where ranks compute on GPUs. Values
/// that cannot be determined are not set.
LibraryEnvironment library_environment(const base::Environment& environment, topology::GpuUse gpus);

/// Sets the variables in this process: before MPI starts, which reads them and may initialize a
/// GPU, and before there is a second thread.
void apply(const LibraryEnvironment& libraries);

/// Sentences for the variables of each reason: "A=1 and B=2 set for this rank (why); set …".
std::vector<std::string> sentences(const LibraryEnvironment& libraries);

}  // namespace trireme::runtime
