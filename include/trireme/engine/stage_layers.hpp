// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/options.hpp"

#include <string>
#include <vector>

namespace trireme::engine {

/// Layers at each position of a pipeline.
struct StageLayers {
  /// Number of layers of each position, in the model's order.
  std::vector<int> counts;
  /// Ratio of floating-point operations, head over one layer, for a token of a whole sequence.
  double head_layers = 0;
  /// Mean work of the stages over the largest, with these counts and with even ones.
  double balance = 1;
  double even_balance = 1;

  /// "4,4,4,3 layers a stage, ...".
  std::string text() const;
};

/// Layers of each position: parallel.stage_layers where given; else balanced with the head, whose
/// GEMM with the vocabulary weighs as many layers as it takes operations. `counts` is empty where
/// there are fewer layers than positions, which leaves no choice.
StageLayers stage_layers(const model::ModelConfig& model, const ScheduleOptions& schedule,
                         int stages);

/// Places of the model's chunks on a pipeline.
layout::Placement placement_of(const ScheduleOptions& schedule, int stages);

/// [stage][chunk]: layers of the model.
std::vector<std::vector<layout::LayerRange>> chunk_layers(const model::ModelConfig& model,
                                                          const ScheduleOptions& schedule,
                                                          int stages);

}  // namespace trireme::engine
