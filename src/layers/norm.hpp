// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

#include "layers/weights.hpp"

namespace trireme::layers {

/// Statistics that a norm keeps for its backward.
struct NormStatistics {
  device::Tensor mean;  // f32 [rows], layer norm only
  device::Tensor rstd;  // f32 [rows]
};

/// RMSNorm or LayerNorm, as the architecture has it, over the rows of the residual stream.
class Norm {
 public:
  Norm(const StageContext& context, const model::StageParameters& stage, const std::string& name)
      : context_(context), weights_(matrix(stage, name)) {}

  NormStatistics allocate(device::Arena& arena) const {
    const auto rows = context_.local_rows();
    NormStatistics kept;
    if (kind() == device::NormKind::layer) kept.mean = arena.allocate(device::DType::f32, {rows});
    kept.rstd = arena.allocate(device::DType::f32, {rows});
    return kept;
  }

  /// y = norm(x).
  void forward(const device::Tensor& x, const NormStatistics& kept, const device::Tensor& y) const {
    forward_sum(x, {}, {}, kept, y);
  }
  /// y = norm(x) once more, to the same bits: of what forward() took, or of forward_sum()'s sum.
  void again(const device::Tensor& x, const device::Tensor& y) const { forward(x, {}, y); }
  /// sum = x + residual; y = norm(sum).
  void forward_sum(const device::Tensor& x, const device::Tensor& residual,
                   const device::Tensor& sum, const NormStatistics& kept,
                   const device::Tensor& y) const {
    context_.kernels.issue(device::NormForward{.kind = kind(),
                                               .x = x,
                                               .residual = residual,
                                               .sum = sum,
                                               .weight = weights_.weight,
                                               .bias = weights_.bias,
                                               .y = y,
                                               .mean = kept.mean,
                                               .rstd = kept.rstd,
                                               .eps = context_.config.norm_eps});
  }
  /// dx = gradient through the norm + d_residual (which may be empty); weights' gradients add up.
  void backward(const device::Tensor& dy, const device::Tensor& x, const NormStatistics& kept,
                const device::Tensor& d_residual, const device::Tensor& dx) const {
    context_.kernels.issue(device::NormBackward{.kind = kind(),
                                                .dy = dy,
                                                .x = x,
                                                .weight = weights_.weight,
                                                .mean = kept.mean,
                                                .rstd = kept.rstd,
                                                .d_residual = d_residual,
                                                .dx = dx,
                                                .d_weight = weights_.d_weight,
                                                .d_bias = weights_.d_bias,
                                                .eps = context_.config.norm_eps});
  }

 private:
  device::NormKind kind() const {
    return context_.config.family().norm == model::NormKind::layer ? device::NormKind::layer
                                                                   : device::NormKind::rms;
  }

  const StageContext& context_;
  Matrix weights_;
};

}  // namespace trireme::layers
