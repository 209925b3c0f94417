// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/cluster.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/staged.hpp"
#include "trireme/runtime/open_files.hpp"

#include "bind.hpp"

#include <utility>
#include <vector>

namespace trireme::runtime {
namespace {

base::Result<layout::Mesh> mesh_of(const JoinOptions& options, int world_size) {
  auto mesh = layout::arrange(options.arrangement, world_size);
  if (mesh.ok() || !options.described) return mesh;
  return layout::arrange(options.described(), world_size);
}

/// Says before the first connections that there may be too many.
void warn_of_open_files(const layout::Mesh& mesh) {
  int peers = 0;
  for (const auto& [axis, degree] : mesh.axes()) peers += degree - 1;
  const auto shortage = open_files_shortage(peers);
  if (!shortage.empty()) base::log::warning("runtime", "{}", shortage);
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
                  {},
                  std::move(start_up)};
  cluster.start_up.reached("agreement");
  warn_of_open_files(cluster.mesh);
  cluster.binding = bind_ranks(mpi, *cluster.world, options, environment);
  cluster.start_up.reached("binding");
  cluster.groups = {cluster.mesh, cluster.rank,
                    [&](const comm::AxisGroup&, const char* name, std::vector<base::Rank> members) {
                      return mpi.make_group(name, std::move(members), group_options);
                    }};
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
  for (auto& [axis, members, group] : cluster.groups.all()) {
    if (group) group = comm::make_staged_group(std::move(group), device);
  }
}

}  // namespace trireme::runtime
