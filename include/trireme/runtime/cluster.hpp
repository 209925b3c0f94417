// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/comm/axis_groups.hpp"
#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/comm/process_group.hpp"
#include "trireme/device/compute_threads.hpp"
#include "trireme/device/device.hpp"
#include "trireme/layout/arrange.hpp"
#include "trireme/runtime/identity.hpp"
#include "trireme/runtime/start_up.hpp"
#include "trireme/schema/choices.hpp"
#include "trireme/topology/placement.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trireme::runtime {

using schema::BindingRule;
using schema::OrderRule;

/// Settings of join(), from the configuration.
struct JoinOptions {
  layout::ParallelArrangement arrangement;
  /// Arrangement with the model, which is called only where degrees do not fit the world, for
  /// proposals. May be empty.
  std::function<layout::ParallelArrangement()> described = {};
  double timeout_seconds = 600;
  comm::Backend backend = comm::Backend::automatic;
  BindingRule binding = BindingRule::automatic;
  OrderRule order = OrderRule::automatic;
  topology::GpuUse gpus = topology::GpuUse::none;
  /// With GpuUse::one_each: PCI bus ids of the GPUs that this process may use, or why there are
  /// none.
  base::Result<std::vector<std::string>> visible_gpus = std::vector<std::string>{};
};

/// Computing resources of a rank on its node.
struct Binding {
  /// Compute threads: as many as the binding has cores, unless OMP_NUM_THREADS is set.
  int threads = 1;
  /// Waiting of idle compute threads for work.
  device::ThreadWait wait = {};
  /// "0-3": hardware threads that this rank may use.
  std::string cpus;
  /// The operating system's numbers of the NUMA nodes that they belong to, ascending; empty where
  /// they are not known.
  std::vector<int> numa_nodes = {};
  /// Reason of the binding, for people.
  std::string reason;
  /// PCI bus id of the GPU that this rank computes on; empty without one.
  std::string gpu_bus_id;
  /// NICs of this node that do RDMA and whose port is up: "mlx5_0:1".
  std::vector<std::string> rdma_nics;
};

/// Place of a rank among all ranks, and its process groups. Groups are destroyed before MPI ends.
struct Cluster {
  Identity identity;
  layout::Mesh mesh;
  base::Rank rank;
  /// Launcher's number of this rank (Slurm's task).
  int task = 0;
  Binding binding;

  std::unique_ptr<comm::ProcessGroup> world;
  comm::OwnedAxisGroups groups;
  StartUp start_up;
  /// Folder for data that a later run can reuse; empty where the user has none.
  std::filesystem::path cache_folder = {};
  /// Device that parameters and gradients are allocated on instead of the computing one: memory
  /// from NCCL's allocator, for symmetric windows; null elsewhere.
  std::unique_ptr<device::Device> shared_memory = nullptr;
  /// Outlives this; null in tests that stand on no MPI.
  comm::MpiRuntime* mpi = nullptr;

  int coordinate(layout::Axis axis) const { return mesh.coordinate(axis, rank); }
};

/// Collective over the world. Host-blocking: yes. Takes a started MPI to a rank with its place in
/// the mesh: refuses silent singletons and impossible meshes, binds to cores, makes the groups. A
/// failure of any rank is thrown by all together (comm::AgreedError). `start_up` continues in the
/// cluster.
Cluster join(comm::MpiRuntime& mpi, const JoinOptions& options,
             const base::Environment& environment, StartUp start_up = {});

/// Makes the groups of the axes move tensors of `device`, which outlives
/// them, through the host; world stays on the host. Without effect for the host's own memory.
/// device_groups.hpp chooses between this and NCCL.
void use_staged_groups(device::Device& device, Cluster& cluster);

}  // namespace trireme::runtime
