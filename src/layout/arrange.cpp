// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/arrange.hpp"

#include "mesh_choices.hpp"

#include <algorithm>

namespace trireme::layout {

base::Result<Mesh> arrange(ParallelArrangement arrangement, int world_size) {
  arrangement.world_size = world_size;
  arrangement.tensor = arrangement.tensor.value_or(1);
  arrangement.pipeline = arrangement.pipeline.value_or(1);
  for (const auto& violation : violations(arrangement)) {
    const bool of_degrees = violation.rule == ParallelRule::world_not_filled ||
                            violation.rule == ParallelRule::degree_below_one;
    if (of_degrees) {
      return base::Failure{base::ExitCode::launch, text(violation, citation(arrangement))};
    }
  }
  const auto others = *arrangement.tensor * *arrangement.pipeline;
  const auto data = arrangement.data.value_or(world_size / others);
  return Mesh::create({{Axis::pipeline, static_cast<int>(*arrangement.pipeline)},
                       {Axis::data, static_cast<int>(data)},
                       {Axis::tensor, static_cast<int>(*arrangement.tensor)}},
                      world_size);
}

void describe(const Mesh& mesh, ParallelArrangement& arrangement) {
  arrangement.world_size = mesh.world_size();
  arrangement.tensor = mesh.degree(Axis::tensor);
  arrangement.pipeline = mesh.degree(Axis::pipeline);
  arrangement.data = mesh.degree(Axis::data);
}

}  // namespace trireme::layout
