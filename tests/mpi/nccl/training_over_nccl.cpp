// SPDX-License-Identifier: Apache-2.0
#include "mpi/nccl/training_over_nccl.hpp"

#include "support/mpi/world.hpp"

#include <utility>

namespace trireme::testing {

using layout::Axis;

std::vector<base::Rank> everybody() {
  std::vector<base::Rank> ranks;
  for (int rank = 0; rank < mpi().world_size(); ++rank) ranks.emplace_back(rank);
  return ranks;
}

layout::Mesh mesh_of_world() {
  switch (mpi().world_size()) {
    case 2:
      return layout::Mesh::of(1, 1, 2);
    case 4:
      return layout::Mesh::of(2, 2, 1);
    case 8:
      return layout::Mesh::of(2, 2, 2);
    default:
      return layout::Mesh::of(1, 1, 1);
  }
}

engine::EngineOptions options_for(const layout::Mesh& mesh, int zero_level) {
  engine::EngineOptions options;
  options.model = tiny(model::Architecture::gpt2);
  options.sharding.mesh = mesh;
  options.sharding.rank = mpi().world_rank();
  options.schedule.micro_batch = 2;
  options.schedule.micro_batches = 8 / mesh.degree(Axis::data);
  options.schedule.sequence_length = 16;
  options.numerics.clip_norm = 1.0;
  options.sharding.zero_level = zero_level;
  options.numerics.seed = 7;
  return options;
}

comm::OwnedAxisGroups groups_over_nccl(FakeNccl& nccl, const layout::Mesh& mesh,
                                       device::Device& device,
                                       comm::NcclRegistration registration) {
  auto groups = mpi_groups(mesh);
  const auto world = mpi().make_world({comm::Backend::mpi, 60});
  comm::NcclOptions options;
  options.registration = registration;
  comm::NcclGroups parent(nccl.library(), mpi(), *world, device, options);
  for (auto& [axis, ends, group] : groups.all()) {
    group = parent.split(std::move(group));
  }
  return groups;
}

std::vector<Observed> train_in(engine::Memory& memory, const engine::EngineOptions& options,
                               const comm::OwnedAxisGroups& groups, device::Kernels& kernels) {
  engine::Engine engine(options, groups.views(), kernels, memory);
  engine.initialise();
  std::vector<Observed> observed;
  for (int step = 0; step < steps_over_nccl; ++step) {
    fill(engine, step);
    engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update({step + 1, 3e-3, reduced.gradient_norm});
    observed.push_back({reduced.loss, reduced.gradient_norm});
  }
  return observed;
}

std::vector<Observed> train_over_nccl(FakeNccl& nccl, const engine::EngineOptions& options,
                                      Haste haste, comm::NcclRegistration registration) {
  SimulatedKernels kernels(device::make_cpu_kernels(1), haste);
  const auto groups = groups_over_nccl(nccl, options.sharding.mesh, kernels.device(), registration);
  return train(options, groups.views(), kernels, steps_over_nccl);
}

}  // namespace trireme::testing
