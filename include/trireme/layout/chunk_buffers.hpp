// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/schedule.hpp"

#include <vector>

namespace trireme::layout {

/// Buffers that a chunk needs, each for one micro-batch: micro-batch m uses number m modulo their
/// count, because a chunk takes micro-batches in order, and none is written before its last reader
/// is done.
struct ChunkBuffers {
  /// Activations, from the chunk's forward until the gradient of its input.
  int activations = 1;
  /// Those among them that gradients of weights read, from forward until these are computed.
  int operands = 1;
  /// Operands of the weights' gradients that backward_input leaves until backward_weight.
  int left = 0;
  /// Outputs of the chunk before: from its forward on the same stage, or from the arrival of a
  /// message, until this chunk has its input's gradient. A message may arrive one action early.
  int inputs = 0;
  /// Gradients from the chunk after, likewise, until the end of this chunk's backward.
  int output_gradients = 0;
};

/// The same with longer rings of inputs and gradients: after twice as many micro-batches as there
/// are activations of, a chunk meets the same buffers again.
std::vector<ChunkBuffers> with_common_period(std::vector<ChunkBuffers> buffers);

/// Parts of a schedule that run.
enum class Passes { forward_alone, both };

/// [chunk] of a stage. Without a backward to come a chunk has activations of one micro-batch alone.
std::vector<ChunkBuffers> chunk_buffers(const Schedule& schedule, int stage, Passes passes);

}  // namespace trireme::layout
