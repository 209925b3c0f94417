// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

#include "layers/attention/attention.hpp"
#include "mlp.hpp"
#include "norm.hpp"

namespace trireme::layers {

/// Activations that a layer keeps from forward for backward. Its input x is kept by its producer.
struct LayerActivations {
  NormStatistics attention_norm;
  AttentionActivations attention;
  device::Tensor sum;  // [local_rows, hidden]: x + attention
  NormStatistics mlp_norm;
  MlpActivations mlp;
};

struct LayerGradients {
  AttentionGradients attention;
  MlpGradients mlp;
};

/// One pre-norm transformer layer:
/// sum = x + attention(norm(x)); out = sum + mlp(norm(sum)).
class TransformerLayer {
 public:
  /// `discarded`: kinds that forward does not keep.
  TransformerLayer(const StageContext& context, const model::StageParameters& stage, int layer,
                   const RotaryTables& rotary, ActivationSet discarded);

  /// Activations to keep; empty when the whole layer is computed again.
  LayerActivations allocate(device::Arena& arena) const { return allocate(arena, discarded_); }

  // x, out, d_out, d_x: [local_rows, hidden].
  void forward(const MicroBatch& batch, const device::Tensor& x, const LayerActivations& kept,
               const device::Tensor& out) const;
  KeyValueCache make_cache(device::Arena& arena, const DecoderStage::Capacity& capacity) const {
    return attention_.make_cache(arena, capacity);
  }
  /// Forward of new tokens, in place; x: [rows, hidden].
  void decode(const CachedRows& rows, const device::Tensor& x) const;
  /// Input gradient, then weight gradients.
  void backward(const MicroBatch& batch, const device::Tensor& x, const LayerActivations& kept,
                const device::Tensor& d_out, const device::Tensor& d_x) const;

 private:
  LayerActivations allocate(device::Arena& arena, ActivationSet discarded) const;
  /// Activations with places in the workspace for those that are not kept.
  LayerActivations completed(const LayerActivations& kept) const;
  /// Activations in full: those that are not kept are computed again.
  LayerActivations restored(const MicroBatch& batch, const device::Tensor& x,
                            const LayerActivations& kept) const;
  /// Computes the layer again, but for its output.
  void forward_again(const MicroBatch& batch, const device::Tensor& x,
                     const LayerActivations& whole) const;
  /// Forward from x to kept.mlp.input. `branch` is overwritten.
  void forward_to_mlp(const MicroBatch& batch, const device::Tensor& x,
                      const LayerActivations& kept, const device::Tensor& branch) const;
  LayerGradients backward_input(const MicroBatch& batch, const device::Tensor& x,
                                const LayerActivations& kept, const device::Tensor& d_out,
                                const device::Tensor& d_x) const;
  void backward_weight(const LayerActivations& kept, const LayerGradients& gradients) const;
  /// Gradient through a branch's dropout: a masked copy in the workspace, or d_out itself.
  device::Tensor through_dropout(const MicroBatch& batch, const char* site,
                                 const device::Tensor& d_out) const;
  void drop(const MicroBatch& batch, const char* site, const device::Tensor& from,
            const device::Tensor& to) const;

  const StageContext& context_;
  int layer_;
  ActivationSet discarded_;
  Norm attention_norm_;
  AttentionBlock attention_;
  Norm mlp_norm_;
  MlpBlock mlp_;
};

}  // namespace trireme::layers
