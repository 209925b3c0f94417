// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/comm/measure.hpp"
#include "trireme/comm/nccl.hpp"
#include "trireme/comm/nccl_log.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/runtime/cluster.hpp"

#include <memory>
#include <string>
#include <vector>

namespace trireme::apps {

/// Ranks that communicate: all, or those of one axis of a mesh, all its groups at once.
struct BenchAxis {
  std::string group = "world";  ///< "world", "dp", "tp", "pp"
  int tensor = 1;
  int pipeline = 1;
};

/// True if a backend of this name moves the memory of GPUs ("nccl", "staged").
bool is_of_gpus(const std::string& backend);

/// Groups over the ranks of an axis, in the order of the backends' names, and the objects that must
/// outlive them.
struct BenchGroups {
  std::unique_ptr<device::Kernels> kernels;
  std::vector<runtime::Cluster> clusters;
  std::vector<std::unique_ptr<comm::ProcessGroup>> groups;
  device::Device* device = nullptr;
  /// Transport of NCCL's data, for people; empty without NCCL.
  std::string transport;
};

/// Collective over all ranks. All backends are of GPUs, or none. Throws AgreedError where the
/// mesh does not fit, or a rank has no GPU of its own.
BenchGroups make_bench_groups(comm::MpiRuntime& mpi, const base::Environment& environment,
                              const std::vector<std::string>& backends, const BenchAxis& axis,
                              const comm::NcclOptions& nccl);

}  // namespace trireme::apps
