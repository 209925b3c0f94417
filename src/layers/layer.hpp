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

/// Activations of a layer whose forward begins before that of the layer below has ended, or ends
/// after that of the layer above has begun; layers that do not keep them share these.
struct BorderActivations {
  NormStatistics mixer_norm;
  device::Tensor input;  // [local_rows, hidden]: the mixer's
  device::Tensor sum;    // [local_rows, hidden]
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

  // Steps of forward (LayersForward), of some sequences, of whose local rows the tensors are, and
  // around them the parts'.
  /// Adds room for what `kept` lacks.
  void add_border(device::Arena& arena, const LayerActivations& kept,
                  BorderActivations& border) const;
  /// Activations with places for those that are not kept: those of the border and of `left`, or in
  /// the workspace.
  LayerActivations completed(const LayerActivations& kept, const BorderActivations& border,
                             const LayerGradients& left) const;
  /// Views of activations of some sequences.
  LayerActivations part_of(const LayerActivations& whole, const SequenceRows& rows) const;
  const Mixer& mixer() const { return *mixer_; }
  const ChannelPart& channel() const { return *channel_; }
  /// x to the mixer's input.
  void enter_mixer(const device::Tensor& x, const NormStatistics& kept,
                   const device::Tensor& input) const;
  /// x and the mixer's output, which is overwritten, to kept.sum and the channel part's input.
  void enter_channel(const MicroBatch& batch, const SequenceRows& rows, const device::Tensor& x,
                     const device::Tensor& branch, const LayerActivations& kept) const;
  /// The sum and the channel part's output, which is overwritten, to the layer's output.
  void leave(const MicroBatch& batch, const SequenceRows& rows, const device::Tensor& sum,
             const device::Tensor& branch, const device::Tensor& out) const;

  KeyValueCache make_cache(device::Arena& arena, const DecoderStage::Capacity& capacity) const {
    return mixer_->make_cache(arena, capacity);
  }
  /// Forward of new tokens, in place; x: [rows, hidden].
  void decode(const CachedRows& rows, const device::Tensor& x) const;
  // x, d_out, d_x: [local_rows, hidden].
  /// All gradients: those of matrices while those of inputs are summed over ranks.
  void backward(const MicroBatch& batch, const device::Tensor& x, const LayerActivations& kept,
                const device::Tensor& d_out, const device::Tensor& d_x, BackwardRooms& rooms) const;

  /// Room for what backward_input leaves, where backward_weight comes later.
  LayerGradients allocate_left(device::Arena& arena) const;
  /// Whether backward_weight reads d_out, which has to stay until then; not where a masked copy is
  /// left.
  bool weights_read_output_gradient() const;
  /// The input's gradient, and those of the norms' weights.
  void backward_input(const MicroBatch& batch, const device::Tensor& x,
                      const LayerActivations& kept, const device::Tensor& d_out,
                      const device::Tensor& d_x, const LayerGradients& left,
                      BackwardRooms& rooms) const;
  /// Gradients of the matrices, from what is kept and left.
  void backward_weight(const LayerOperands& kept, const device::Tensor& d_out,
                       const LayerGradients& left) const;

 private:
  LayerActivations allocate(device::Arena& arena, ActivationSet discarded) const;
  LayerOperands allocate_operands(device::Arena& arena, ActivationSet discarded) const;
  /// Activations in full: those that are not kept are computed again.
  LayerActivations restored(const MicroBatch& batch, const device::Tensor& x,
                            const LayerActivations& kept, const LayerGradients& left) const;
  /// Computes the layer again, but for its output.
  void forward_again(const MicroBatch& batch, const device::Tensor& x, const LayerActivations& kept,
                     const LayerActivations& whole) const;
  /// Output of a part of all rows. Its workspace is the caller's scope.
  void run_part(const MicroBatch& batch, const LayerPart& part, const PartActivations& kept,
                const device::Tensor& out) const;
  /// Gradients of the parts without room in `left`, where the matrices' are not left for later, get
  /// it in the workspace, in the caller's scope.
  void propagate(const MicroBatch& batch, const device::Tensor& x, const LayerActivations& whole,
                 const device::Tensor& d_out, const device::Tensor& d_x, Weights weights,
                 const LayerGradients& left, BackwardRooms& rooms) const;
  /// Gradients of a part's matrices; d_out: [local_rows, hidden].
  void add_weight_gradients(const LayerPart& part, const PartOperands& kept,
                            const device::Tensor& d_out, PartGradients left) const;
  /// Gradient through a branch's dropout: a masked copy, in `room` or in the workspace, or d_out
  /// itself.
  device::Tensor through_dropout(const MicroBatch& batch, const char* site,
                                 const device::Tensor& d_out, const device::Tensor& room) const;
  /// `first`: the local row that is the tensors' first.
  void drop(const MicroBatch& batch, const char* site, const device::Tensor& from,
            const device::Tensor& to, std::int64_t first = 0) const;

  const StageContext& context_;
  int layer_;
  ActivationSet discarded_;
  Norm mixer_norm_;
  std::unique_ptr<Mixer> mixer_;
  Norm channel_norm_;
  std::unique_ptr<ChannelPart> channel_;
};

}  // namespace trireme::layers
