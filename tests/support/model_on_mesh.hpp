// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/mesh.hpp"
#include "trireme/layout/parallel_rules.hpp"
#include "trireme/model/model_config.hpp"

#include <cstdint>
#include <vector>

namespace trireme::testing {

/// Whether the mesh can hold the model, by layout::check(): whole heads per tensor-parallel rank, a
/// layer per stage.
inline base::Status check_on(const model::ModelConfig& config, const layout::Mesh& mesh) {
  layout::ParallelArrangement arrangement{.tensor = mesh.degree(layout::Axis::tensor),
                                          .pipeline = mesh.degree(layout::Axis::pipeline),
                                          .virtual_stages = 1,
                                          .stage_layers = std::vector<std::int64_t>{}};
  model::describe(config, arrangement);
  return layout::check(arrangement);
}

}  // namespace trireme::testing
