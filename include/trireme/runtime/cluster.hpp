#pragma once

#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/layout/mesh.hpp"

#include <memory>

namespace trireme::runtime {

/// What a rank is part of: its place in the mesh and one process group per axis.
struct Cluster {
  layout::Mesh mesh;
  base::Rank rank;
  std::unique_ptr<comm::ProcessGroup> world;
  std::unique_ptr<comm::ProcessGroup> tensor;
  std::unique_ptr<comm::ProcessGroup> pipeline;
  std::unique_ptr<comm::ProcessGroup> data;
  /// First and last stage of this rank's pipeline; null elsewhere and without a pipeline.
  std::unique_ptr<comm::ProcessGroup> embedding;
};

/// Collective over all ranks. Makes every group of the mesh that this rank is in.
Cluster join(comm::MpiRuntime& mpi, const layout::Mesh& mesh, const comm::GroupOptions& options);

}  // namespace trireme::runtime
