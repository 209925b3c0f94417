// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"

#include <string>
#include <vector>

namespace trireme::engine {

/// Layers at each position of a pipeline.
struct StageLayers {
  /// One count a position, in the model's order.
  std::vector<int> counts;
  /// The head's floating-point operations over a layer's, of a token of a whole sequence.
  double head_layers = 0;
  /// Mean over largest work of the stages, of these counts and of even ones.
  double balance = 1;
  double even_balance = 1;

  /// "4,4,4,3 layers a stage, ...".
  std::string text() const;
};

/// parallel.stage_layers where they are given; else the head, too, is shared out: its product with
/// the vocabulary weighs as many layers as it takes operations. Where fewer layers than positions
/// leave nothing to choose, `counts` is empty.
StageLayers stage_layers(const EngineOptions& options);

}  // namespace trireme::engine
