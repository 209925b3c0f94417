// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "layers/attention/rotary.hpp"
#include "norm.hpp"
#include "part_backward.hpp"

#include <memory>

namespace trireme::layers {

/// Activations of a layer that gradients of its weights read.
struct LayerOperands {
  PartOperands mixer;
  PartOperands channel;
};

/// Activations that a layer keeps from forward for backward. Its input x is kept by its producer.
struct LayerActivations {
  NormStatistics mixer_norm;
  LayerPart::Kept mixer;
  device::Tensor sum;  // [local_rows, hidden]: x + the mixer's output
  NormStatistics channel_norm;
  LayerPart::Kept channel;
};

/// Tensors that a layer's backward_input leaves for its backward_weight.
struct LayerGradients {
  PartGradients mixer;
  PartGradients channel;
};

/// One pre-norm transformer layer of two parts, attention and an MLP so far:
/// sum = x + mixer(norm(x)); out = sum + channel(norm(sum)).
class TransformerLayer {
 public:
  /// `discarded`: kinds that forward does not keep.
  TransformerLayer(const StageContext& context, const model::StageParameters& stage, int layer,
                   const RotaryTables& rotary, ActivationSet discarded);

  /// Activations to keep, but for operands; empty when the whole layer is computed again.
  LayerActivations allocate(device::Arena& arena) const { return allocate(arena, discarded_); }
  LayerOperands allocate_operands(device::Arena& arena) const {
    return allocate_operands(arena, discarded_);
  }
  /// Makes the operands of a micro-batch a part of what is kept of it.
  void bind(LayerActivations& kept, const LayerOperands& operands) const;

  // x, out, d_out, d_x: [local_rows, hidden].
  void forward(const MicroBatch& batch, const device::Tensor& x, const LayerActivations& kept,
               const device::Tensor& out) const;
  KeyValueCache make_cache(device::Arena& arena, const DecoderStage::Capacity& capacity) const {
    return mixer_->make_cache(arena, capacity);
  }
  /// Forward of new tokens, in place; x: [rows, hidden].
  void decode(const CachedRows& rows, const device::Tensor& x) const;
  /// All gradients: those of matrices while those of inputs are summed over ranks.
  void backward(const MicroBatch& batch, const device::Tensor& x, const LayerActivations& kept,
                const device::Tensor& d_out, const device::Tensor& d_x) const;

  /// Room for what backward_input leaves, where backward_weight comes later.
  LayerGradients allocate_left(device::Arena& arena) const;
  /// Whether backward_weight reads d_out, which has to stay until then; not where a masked copy is
  /// left.
  bool weights_read_output_gradient() const;
  /// The input's gradient, and those of the norms' weights.
  void backward_input(const MicroBatch& batch, const device::Tensor& x,
                      const LayerActivations& kept, const device::Tensor& d_out,
                      const device::Tensor& d_x, const LayerGradients& left) const;
  /// Gradients of the matrices, from what is kept and left.
  void backward_weight(const LayerOperands& kept, const device::Tensor& d_out,
                       const LayerGradients& left) const;

 private:
  LayerActivations allocate(device::Arena& arena, ActivationSet discarded) const;
  LayerOperands allocate_operands(device::Arena& arena, ActivationSet discarded) const;
  /// Activations with places for those that are not kept: those of `left`, or in the workspace.
  LayerActivations completed(const LayerActivations& kept, const LayerGradients& left) const;
  /// Activations in full: those that are not kept are computed again.
  LayerActivations restored(const MicroBatch& batch, const device::Tensor& x,
                            const LayerActivations& kept, const LayerGradients& left) const;
  /// Computes the layer again, but for its output.
  void forward_again(const MicroBatch& batch, const device::Tensor& x, const LayerActivations& kept,
                     const LayerActivations& whole) const;
  /// Forward from x to the input of the channel part. `branch` is overwritten.
  void forward_to_channel(const MicroBatch& batch, const device::Tensor& x,
                          const LayerActivations& kept, const device::Tensor& branch) const;
  /// Gradients of the parts without room in `left`, where the matrices' are not left for later, get
  /// it in the workspace, in the caller's scope.
  void propagate(const MicroBatch& batch, const device::Tensor& x, const LayerActivations& whole,
                 const device::Tensor& d_out, const device::Tensor& d_x, Weights weights,
                 const LayerGradients& left) const;
  /// Gradients of a part's matrices; d_out: [local_rows, hidden].
  void add_weight_gradients(const LayerPart& part, const PartOperands& kept,
                            const device::Tensor& d_out, PartGradients left) const;
  /// Gradient through a branch's dropout: a masked copy, in `room` or in the workspace, or d_out
  /// itself.
  device::Tensor through_dropout(const MicroBatch& batch, const char* site,
                                 const device::Tensor& d_out, const device::Tensor& room) const;
  void drop(const MicroBatch& batch, const char* site, const device::Tensor& from,
            const device::Tensor& to) const;

  const StageContext& context_;
  int layer_;
  ActivationSet discarded_;
  Norm mixer_norm_;
  std::unique_ptr<Mixer> mixer_;
  Norm channel_norm_;
  std::unique_ptr<ChannelPart> channel_;
};

}  // namespace trireme::layers
