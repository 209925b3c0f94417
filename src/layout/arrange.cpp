// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/arrange.hpp"

#include "mesh_choices.hpp"
#include "quantities.hpp"

namespace trireme::layout {

base::Result<Mesh> arrange(ParallelArrangement arrangement, int world_size) {
  arrangement.world_size = world_size;
  complete_degrees(arrangement);
  for (const auto& violation : violations(arrangement)) {
    const bool of_degrees = violation.rule == ParallelRule::world_not_filled ||
                            violation.rule == ParallelRule::degree_below_one;
    if (of_degrees) {
      return base::Failure{base::ExitCode::launch, text(violation, citation(arrangement))};
    }
  }
  if (!arrangement.data) arrangement.data = world_size / known_ranks(arrangement);
  return Mesh::create(extents_of(arrangement), world_size);
}

void describe(const Mesh& mesh, ParallelArrangement& arrangement) {
  arrangement.world_size = mesh.world_size();
  for (const auto& row : axis_rows()) arrangement.*row.degree.number = mesh.degree(row.axis);
}

}  // namespace trireme::layout
