// SPDX-License-Identifier: Apache-2.0
#include "apps/commands/bench_groups.hpp"

#include "trireme/base/error.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/runtime/session.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace trireme::apps {
namespace {

using layout::Axis;

/// Axis of a group that is not the world.
Axis axis_of(const std::string& group) {
  const auto* const found =
      std::find_if(std::begin(layout::all_axes), std::end(layout::all_axes),
                   [&](Axis axis) { return group == layout::short_name(axis); });
  return found == std::end(layout::all_axes) ? Axis::data : *found;
}

/// Ranks of this one's group.
std::vector<base::Rank> members(const layout::Mesh& mesh, base::Rank self,
                                const std::string& group) {
  return group == "world" ? mesh.group(layout::all_axes, self) : mesh.group(axis_of(group), self);
}

/// Mesh of all ranks whose data-parallel group is the world.
runtime::JoinOptions join_options(const BenchAxis& axis, double timeout_seconds) {
  runtime::JoinOptions options;
  if (axis.group != "world") {
    options.arrangement.tensor = axis.tensor;
    options.arrangement.pipeline = axis.pipeline;
  }
  options.timeout_seconds = timeout_seconds;
  return options;
}

/// Kernels of every rank on the GPU of its binding.
std::unique_ptr<device::Kernels> kernels_of(runtime::Cluster& cluster) {
  return comm::agree_after(*cluster.world, [&] {
    return base::value_or_throw(runtime::make_kernels(
        {.backend = runtime::ComputeOptions::Backend::cuda}, cluster.binding));
  });
}

BenchGroups groups_of_gpus(comm::MpiRuntime& mpi, const base::Environment& environment,
                           const std::vector<std::string>& backends, const BenchAxis& axis,
                           const comm::NcclOptions& nccl) {
  BenchGroups made;
  auto join = join_options(axis, nccl.timeout_seconds);
  join.gpus = topology::GpuUse::one_each;
  join.visible_gpus = device::gpu_bus_ids();
  for (const auto& backend : backends) {
    auto cluster = runtime::join(mpi, join, environment);
    if (!made.kernels) made.kernels = kernels_of(cluster);
    made.device = &made.kernels->device();
    const auto wish =
        backend == "nccl" ? runtime::DeviceGroups::nccl : runtime::DeviceGroups::staged;
    auto report = runtime::use_device_groups(
        *made.device, cluster, mpi,
        {.wish = wish, .nccl = nccl, .rdma = runtime::RdmaRule::optional});
    if (backend == "nccl") made.transport = std::move(report.transport.sentence);
    made.groups.push_back(cluster.groups.take(axis_of(axis.group)));
    made.clusters.push_back(std::move(cluster));
  }
  return made;
}

}  // namespace

bool is_of_gpus(const std::string& backend) {
  return backend == "nccl" || backend == "staged";
}

BenchGroups make_bench_groups(comm::MpiRuntime& mpi, const base::Environment& environment,
                              const std::vector<std::string>& backends, const BenchAxis& axis,
                              const comm::NcclOptions& nccl) {
  if (is_of_gpus(backends.front())) {
    return groups_of_gpus(mpi, environment, backends, axis, nccl);
  }
  BenchGroups made;
  made.device = &device::host_device();
  const auto mesh = base::value_or_throw(
      layout::arrange(join_options(axis, nccl.timeout_seconds).arrangement, mpi.world_size()));
  for (const auto& backend : backends) {
    made.groups.push_back(
        mpi.make_group(axis.group, members(mesh, mpi.world_rank(), axis.group),
                       {base::value_or_throw(comm::backend_named(backend)), nccl.timeout_seconds}));
  }
  return made;
}

}  // namespace trireme::apps
