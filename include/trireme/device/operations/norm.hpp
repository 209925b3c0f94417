// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/tensor.hpp"

namespace trireme::device {

enum class NormKind { rms, layer };

/// y = norm(x + residual) * weight + bias over the last dimension; statistics in fp32.
/// RMS: Zhang & Sennrich 2019; layer: Ba et al. 2016. Rows are all dimensions but the last.
struct NormForward {
  static constexpr const char* name = "norm_forward";
  NormKind kind = NormKind::rms;
  Tensor x;           // [rows..., width]
  Tensor residual{};  // like x, or empty
  Tensor sum{};       // like x: x + residual, or empty when there is no residual
  Tensor weight;      // [width]
  Tensor bias{};      // [width], or empty
  Tensor y;           // like x
  Tensor mean{};      // f32 [rows], layer norm only, or empty
  Tensor rstd{};      // f32 [rows], or empty when no backward follows
  float eps = 1e-5F;

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("residual", residual, Role::input);
    if (residual) visit("sum", sum, Role::output);
    visit("weight", weight, Role::input);
    visit("bias", bias, Role::input);
    visit("y", y, Role::output);
    visit("mean", mean, Role::output);
    visit("rstd", rstd, Role::output);
  }
};

/// dx = gradient through the norm + d_residual.
struct NormBackward {
  static constexpr const char* name = "norm_backward";
  NormKind kind = NormKind::rms;
  Tensor dy;            // [rows..., width]
  Tensor x;             // what was normalised: x + residual of the forward
  Tensor weight;        // [width]
  Tensor mean{};        // f32 [rows], layer norm only
  Tensor rstd;          // f32 [rows]
  Tensor d_residual{};  // like dy, or empty; may be dx itself
  Tensor dx;            // like dy
  Tensor d_weight;      // f32 [width], added to
  Tensor d_bias{};      // f32 [width], added to, or empty
  float eps = 1e-5F;    // as in the forward

  void check() const;
  void operands(auto visit) {
    visit("dy", dy, Role::input);
    visit("x", x, Role::input);
    visit("weight", weight, Role::input);
    if (kind == NormKind::layer) visit("mean", mean, Role::input);
    visit("rstd", rstd, Role::input);
    visit("d_residual", d_residual, Role::input);
    visit("dx", dx, Role::output);
    visit("d_weight", d_weight, Role::in_out);
    visit("d_bias", d_bias, Role::in_out);
  }
};

using NormOperations = OperationList<NormForward, NormBackward>;

}  // namespace trireme::device
