// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "layer_part.hpp"
#include "layers/weights.hpp"

namespace trireme::layers {

struct MlpActivations : PartActivations {
  device::Tensor wide;  // [rows, 2 * local_ffn] gate | up, or [rows, local_ffn]
};

/// SwiGLU (Shazeer 2020) or GELU feed-forward: a column-parallel GEMM, the activation, a
/// row-parallel GEMM back.
class MlpBlock final : public ChannelPart {
 public:
  /// `discarded`: kinds that the layer's forward does not keep.
  MlpBlock(const StageContext& context, const model::StageParameters& stage, int layer,
           ActivationSet discarded);

  Kept allocate(device::Arena& arena, ActivationSet discarded) const override;
  Kept completed(const PartActivations& kept, const PartGradients& gradients) const override;
  PartOperands allocate_operands(device::Arena& arena, ActivationSet discarded) const override;
  void bind(PartActivations& kept, const PartOperands& operands) const override;
  device::Tensor place_of_gradient(device::Arena& arena,
                                   const PartActivations& kept) const override;
  PartGradients allocate_left(device::Arena& arena, ActivationSet discarded) const override;
  Kept part_of(const PartActivations& kept, const SequenceRows& rows) const override;
  void forward_wide(const PartActivations& kept, const device::Tensor& input) const override;
  void forward_middle(const MicroBatch& batch, const PartActivations& kept) const override;
  void forward_back(const PartActivations& kept, const device::Tensor& terms) const override;
  void restore(const MicroBatch& batch, const PartActivations& kept,
               PartActivations& whole) const override;
  void backward_input(const MicroBatch& batch, const PartActivations& kept,
                      const PartGradients& gradients, const device::Tensor& terms) const override;
  void backward_weight_back(const device::Tensor& middle,
                            const PartGradients& gradients) const override;
  void backward_weight_wide(const device::Tensor& rows, const PartGradients& gradients,
                            WideColumns columns) const override;

 private:
  device::Tensor place_of_wide(device::Arena& arena) const;
  device::Tensor place_of_activated(device::Arena& arena) const;
  /// kept.wide to kept.middle.
  void activate(const MlpActivations& kept) const;
  /// Gradient of kept.wide from that of this block's output.
  void backward_to_wide(const MlpActivations& kept, const device::Tensor& d_out,
                        const device::Tensor& d_wide) const;

  const StageContext& context_;
  bool gated_;
  /// Whether the GEMM and GELU are one operation. Its GELU may read what is not rounded yet; one
  /// that is computed again reads what was kept.
  bool fused_gelu_;
  Matrix wide_;
  Matrix down_;
  std::int64_t width_;  // local_ffn
};

}  // namespace trireme::layers
