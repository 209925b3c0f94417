// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "layers/layer.hpp"

#include <vector>

/// Tensors of one micro-batch that a chunk keeps, by how long it does.
namespace trireme::layers {

/// Tensors of one micro-batch that the chunk keeps from forward until it has its weights'
/// gradients.
struct Operands {
  std::vector<LayerOperands> layers;
  /// Gradient of the head's input: the head does its backward in forward.
  device::Tensor head_gradient;
};

/// Tensors of one micro-batch that the chunk keeps between forward and the gradient of its input,
/// among them the operands of where the micro-batch is.
struct Slot {
  /// boundary[l]: input of layer l; the first is the caller's unless this chunk embeds. The last
  /// chunk has one more: the head's input.
  std::vector<device::Tensor> boundaries;
  std::vector<LayerActivations> layers;
  device::Tensor head_gradient;
};

/// Tensors of one micro-batch that backward_input leaves for backward_weight.
struct Left {
  std::vector<LayerGradients> layers;
  /// outputs[l]: gradient of layer l's output, where its weights read that; the last layer's is the
  /// caller's, or the head's.
  std::vector<device::Tensor> outputs;
};

}  // namespace trireme::layers
