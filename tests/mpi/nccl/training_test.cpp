// Training over groups of NCCL, with a stand-in for the library whose sums are in other orders than
// ours.
#include "mpi/training/training.hpp"

#include "support/detached/device.hpp"
#include "support/fake_nccl/group.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;
using model::Architecture;

namespace {

constexpr int steps = 4;

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
  options.model = tiny(Architecture::gpt2);
  options.mesh = mesh;
  options.rank = mpi().world_rank();
  options.micro_batch = 2;
  options.micro_batches = 8 / mesh.degree(Axis::data);
  options.sequence_length = 16;
  options.clip_norm = 1.0;
  options.zero_level = zero_level;
  options.seed = 7;
  return options;
}

/// Trains on a detached device whose groups NCCL serves.
std::vector<Observed> train_over_nccl(FakeNccl& nccl, const engine::EngineOptions& options) {
  DetachedKernels kernels(device::make_cpu_kernels(1));
  auto groups = mpi_groups(options.mesh);
  const auto world = mpi().make_world({comm::Backend::mpi, 60});
  comm::NcclGroups parent(nccl.library(), mpi(), *world, kernels.device());
  for (auto* group : {&groups.tensor, &groups.pipeline, &groups.data, &groups.embedding}) {
    *group = parent.split(std::move(*group));
  }
  return train(options, groups.views(), kernels, steps);
}

}  // namespace

TEST_CASE(
    "training over NCCL is that over the host but for the order of sums, and repeats itself") {
  const auto mesh = mesh_of_world();
  still_going(mesh.text());
  const auto cpu = device::make_cpu_kernels(1);
  const auto on_host = mpi_groups(mesh);
  const auto options = options_for(mesh, 0);
  const auto expected = train(options, on_host.views(), *cpu, steps);
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const auto found = train_over_nccl(*nccl, options);
  CHECK(distance(found, expected) <= 1e-5);
  CHECK(train_over_nccl(*nccl, options) == found);
  // Shards of an optimizer are sums of the same numbers in the same order.
  CHECK(train_over_nccl(*nccl, options_for(mesh, 1)) == found);
  // Parameters and gradients of each of the three runs.
  CHECK(nccl->buffers_registered == (mesh.degree(Axis::data) > 1 ? 6 : 0));
  CHECK(nccl->alive() == 0);
  CHECK(nccl->aborted == 0);
}
