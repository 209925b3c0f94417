// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/comm/process_group.hpp"
#include "trireme/device/compute_threads.hpp"
#include "trireme/device/device.hpp"
#include "trireme/layout/arrange.hpp"
#include "trireme/runtime/identity.hpp"
#include "trireme/runtime/start_up.hpp"
#include "trireme/topology/placement.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trireme::runtime {

/// Whether ranks get cores of their own, or stay where the launcher put them.
enum class BindingRule { automatic, none };

/// Whether ranks follow the network or the launcher's numbers.
enum class OrderRule {
  automatic,  ///< the network, unless tasks were dealt out by hand (srun --distribution)
  topology,
  launcher
};

/// What the configuration asks for.
struct JoinOptions {
  layout::ParallelArrangement arrangement;
  /// The same with the model, which is read only where degrees do not fit the world: for proposals.
  /// May be empty.
  std::function<layout::ParallelArrangement()> described = {};
  double timeout_seconds = 600;
  comm::Backend backend = comm::Backend::automatic;
  BindingRule binding = BindingRule::automatic;
  OrderRule order = OrderRule::automatic;
  topology::GpuUse gpus = topology::GpuUse::none;
  /// With GpuUse::one_each: PCI bus ids of those that this process may use, or why there are none.
  base::Result<std::vector<std::string>> visible_gpus = std::vector<std::string>{};
};

/// How a rank computes on its node.
struct Binding {
  /// For kernels: as many as the binding has cores, unless OMP_NUM_THREADS says otherwise.
  int threads = 1;
  /// How those without work wait for it.
  device::ThreadWait wait = {};
  /// "0-3": hardware threads that this rank may use.
  std::string cpus;
  /// Why, in words.
  std::string reason;
  /// PCI bus id of the GPU that this rank computes on; empty without one.
  std::string gpu_bus_id;
  /// NICs of this node that do RDMA and whose port is up: "mlx5_0:1".
  std::vector<std::string> rdma_nics;
};

/// A rank's place among all ranks, and how it reaches them. Groups die before MPI does.
struct Cluster {
  Identity identity;
  layout::Mesh mesh;
  base::Rank rank;
  /// What the launcher calls this rank (Slurm's task).
  int task = 0;
  Binding binding;

  std::unique_ptr<comm::ProcessGroup> world;
  /// The ranks that differ from this one on one axis only, in the order of the axis.
  std::unique_ptr<comm::ProcessGroup> tp;
  std::unique_ptr<comm::ProcessGroup> pp;
  std::unique_ptr<comm::ProcessGroup> dp;
  /// First and last stage of this rank's pipeline, which share tied embeddings; null on the
  /// stages between, and when there is one stage.
  std::unique_ptr<comm::ProcessGroup> embedding;
  StartUp start_up;
  /// For what a later run would find again; empty where the user has none.
  std::filesystem::path cache_folder = {};
  /// Where parameters and gradients are allocated instead of on the device that computes: memory of
  /// NCCL's, as it wants it for symmetric windows; null elsewhere.
  std::unique_ptr<device::Device> shared_memory = nullptr;

  int coordinate(layout::Axis axis) const { return mesh.coordinate(axis, rank); }
};

/// Collective over the world. Host-blocking: yes. From a started MPI to a rank that knows its
/// place: refuses silent singletons and impossible meshes, binds to cores, makes the groups.
/// What any rank cannot do, all throw together (comm::AgreedError). `start_up` goes on in the
/// cluster.
Cluster join(comm::MpiRuntime& mpi, const JoinOptions& options,
             const base::Environment& environment, StartUp start_up = {});

/// From now on the groups of layers (tp, pp, dp, embedding) move tensors of `device`, which
/// outlives them, through the host; world stays the host's. On the host's own memory
/// nothing changes. device_groups.hpp chooses between this and NCCL.
void use_staged_groups(device::Device& device, Cluster& cluster);

}  // namespace trireme::runtime
