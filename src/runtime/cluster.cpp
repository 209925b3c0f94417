// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/cluster.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/staged.hpp"

#include "bind.hpp"

#include <array>

namespace trireme::runtime {
namespace {

using layout::Axis;

std::unique_ptr<comm::ProcessGroup> axis_group(comm::MpiRuntime& mpi, const Cluster& cluster,
                                               std::span<const Axis> axes, const char* name,
                                               const comm::GroupOptions& options) {
  return mpi.make_group(name, cluster.mesh.group(axes, cluster.rank), options);
}

/// First and last stage, when this rank is on one of them.
std::unique_ptr<comm::ProcessGroup> embedding_group(comm::MpiRuntime& mpi, const Cluster& cluster,
                                                    const comm::GroupOptions& options) {
  const int last = cluster.mesh.degree(Axis::pipeline) - 1;
  const int stage = cluster.coordinate(Axis::pipeline);
  if (last == 0 || (stage != 0 && stage != last)) return nullptr;
  return mpi.make_group("embedding",
                        {cluster.mesh.moved(cluster.rank, Axis::pipeline, 0),
                         cluster.mesh.moved(cluster.rank, Axis::pipeline, last)},
                        options);
}

void make_groups(comm::MpiRuntime& mpi, Cluster& cluster, const comm::GroupOptions& options) {
  // Order: the same on every rank, because making a group waits for all of its members.
  constexpr std::array tensor{Axis::tensor};
  constexpr std::array pipeline{Axis::pipeline};
  constexpr std::array data{Axis::data};
  cluster.tp = axis_group(mpi, cluster, tensor, layout::short_name(Axis::tensor), options);
  cluster.pp = axis_group(mpi, cluster, pipeline, layout::short_name(Axis::pipeline), options);
  cluster.dp = axis_group(mpi, cluster, data, layout::short_name(Axis::data), options);
  cluster.embedding = embedding_group(mpi, cluster, options);
}

base::Result<layout::Mesh> mesh_of(const JoinOptions& options, int world_size) {
  auto mesh = layout::arrange(options.arrangement, world_size);
  if (mesh.ok() || !options.described) return mesh;
  return layout::arrange(options.described(), world_size);
}

}  // namespace

Cluster join(comm::MpiRuntime& mpi, const JoinOptions& options,
             const base::Environment& environment, StartUp start_up) {
  const comm::GroupOptions group_options{options.backend, options.timeout_seconds};
  const auto identity = identify(environment);
  // Order: before anything else, because a singleton has no peers to agree with.
  if (identity.ok()) base::success_or_throw(check_world(*identity, mpi.world_size()));
  // Ordinary stores: ranks are not bound yet, and the messages are short.
  auto world = mpi.make_world({options.backend, options.timeout_seconds, comm::Stores::ordinary});
  Cluster cluster{comm::agree(*world, identity),
                  comm::agree(*world, mesh_of(options, mpi.world_size())),
                  mpi.world_rank(),
                  mpi.task_of(mpi.world_rank()),
                  {},
                  std::move(world),
                  nullptr,
                  nullptr,
                  nullptr,
                  nullptr,
                  std::move(start_up)};
  cluster.start_up.reached("agreement");
  cluster.binding = bind_ranks(mpi, *cluster.world, options, environment);
  cluster.start_up.reached("binding");
  make_groups(mpi, cluster, group_options);
  cluster.start_up.reached("groups");
  if (mpi.world_size() == 1) {
    base::log::info("runtime",
                    "a world of one rank, {} (start with mpirun -n N or srun "
                    "--mpi=pmix -n N for more)",
                    base::counted(cluster.binding.threads, "thread"));
  } else {
    base::log::info("runtime", "{} ranks on {}: {}", mpi.world_size(),
                    base::counted(mpi.node_count(), "node"), cluster.mesh.text());
  }
  cluster.mpi = &mpi;
  return cluster;
}

void use_staged_groups(device::Device& device, Cluster& cluster) {
  if (device.is_host()) return;
  for (auto* group : {&cluster.tp, &cluster.pp, &cluster.dp, &cluster.embedding}) {
    if (*group) *group = comm::make_staged_group(std::move(*group), device);
  }
}

}  // namespace trireme::runtime
