// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/arrange.hpp"
#include "trireme/model/model_config.hpp"

#include <cstdint>
#include <vector>

namespace trireme::testing {

/// Whether the mesh can hold the model, by layout::check(): whole heads per tensor-parallel rank, a
/// layer per stage.
inline base::Status check_on(const model::ModelConfig& config, const layout::Mesh& mesh) {
  layout::ParallelArrangement arrangement{.virtual_stages = 1,
                                          .stage_layers = std::vector<std::int64_t>{}};
  layout::describe(mesh, arrangement);
  model::describe(config, arrangement);
  return layout::check(arrangement);
}

}  // namespace trireme::testing
