// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"

namespace trireme::testing {

/// A small model on the last rank of a pipeline stage.
inline engine::EngineOptions options_of_stage(const layout::Mesh& mesh, int stage, int layers) {
  engine::EngineOptions options;
  options.model.vocab_size = 97;
  options.model.hidden_size = 48;
  options.model.intermediate_size = 80;
  options.model.num_hidden_layers = layers;
  options.model.num_attention_heads = 4;
  options.model.num_key_value_heads = 4;
  options.model.head_dim = 12;
  options.model.max_position_embeddings = 64;
  options.sharding.mesh = mesh;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    const base::Rank number{rank};
    if (mesh.coordinate(layout::Axis::pipeline, number) == stage) options.sharding.rank = number;
  }
  options.schedule.micro_batches = 4;
  options.schedule.sequence_length = 8;
  options.sharding.bucket_bytes = 16 << 10;
  return options;
}

}  // namespace trireme::testing
