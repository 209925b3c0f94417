// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

#include "layers/weights.hpp"

namespace trireme::layers {

struct MlpActivations {
  device::Tensor input;     // [local_rows, hidden]: the normalised residual stream
  device::Tensor all_rows;  // [rows, hidden]: the input of all ranks, where it is gathered for both
                            // another forward and the weight gradient
  device::Tensor wide;      // [rows, 2 * local_ffn] gate | up, or [rows, local_ffn]
  device::Tensor activated;  // [rows, local_ffn]
};

struct MlpGradients {
  device::Tensor d_out;   // [rows, hidden]
  device::Tensor d_wide;  // like MlpActivations::wide
};

/// SwiGLU (Shazeer 2020) or GELU feed-forward: a column-parallel GEMM, the activation, a
/// row-parallel GEMM back.
class MlpBlock {
 public:
  /// `discarded`: kinds that the layer's forward does not keep.
  MlpBlock(const StageContext& context, const model::StageParameters& stage, int layer,
           ActivationSet discarded);

  /// Activations that backward needs, but those that are discarded.
  MlpActivations allocate(device::Arena& arena, ActivationSet discarded) const;
  /// Gives those that are missing a place in the workspace.
  void complete(MlpActivations& kept) const;
  /// Reads kept.input. out: [local_rows, hidden].
  void forward(const MlpActivations& kept, const device::Tensor& out) const;
  /// The first part of forward, which is all that backward needs: kept.input to kept.wide and
  /// kept.activated. Its workspace is the caller's scope.
  void widen(const MlpActivations& kept) const;
  /// kept.wide to kept.activated.
  void activate(const MlpActivations& kept) const;
  /// d_out, d_input: [local_rows, hidden]. Gradients live in the caller's workspace scope.
  MlpGradients backward_input(const MlpActivations& kept, const device::Tensor& d_out,
                              const device::Tensor& d_input) const;
  void backward_weight(const MlpActivations& kept, const MlpGradients& gradients) const;

 private:
  device::Tensor place_of_wide(device::Arena& arena) const;
  device::Tensor place_of_activated(device::Arena& arena) const;
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
