#include "trireme/runtime/cluster.hpp"

namespace trireme::runtime {

using layout::Axis;

Cluster join(comm::MpiRuntime& mpi, const layout::Mesh& mesh, const comm::GroupOptions& options) {
  const auto rank = mpi.world_rank();
  Cluster cluster{mesh, rank, mpi.make_world(options), nullptr, nullptr, nullptr, nullptr};
  cluster.tensor = mpi.make_group("tp", mesh.group(Axis::tensor, rank), options);
  cluster.pipeline = mpi.make_group("pp", mesh.group(Axis::pipeline, rank), options);
  cluster.data = mpi.make_group("dp", mesh.group(Axis::data, rank), options);
  const auto stages = cluster.pipeline->ranks();
  if (stages.size() > 1 && (rank == stages.front() || rank == stages.back())) {
    cluster.embedding = mpi.make_group("embedding", {stages.front(), stages.back()}, options);
  }
  return cluster;
}

}  // namespace trireme::runtime
