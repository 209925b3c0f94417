// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/operations/quantise.hpp"
#include "trireme/device/tensor.hpp"

namespace trireme::device {

// Weights are [out, in], as Hugging Face's linear layers are.

/// y = x * transpose(w) + bias. y may be f32 when x and w are bf16.
struct LinearForward {
  static constexpr const char* name = "linear_forward";
  Tensor x;       // [rows, in]
  Tensor w;       // [out, in]
  Tensor bias{};  // [out], or empty
  Tensor y;       // [rows, out]

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("w", w, Role::input);
    visit("bias", bias, Role::input);
    visit("y", y, Role::output);
  }
};

/// dx = dy * w.
struct LinearBackwardInput {
  static constexpr const char* name = "linear_backward_input";
  Tensor dy;  // [rows, out]
  Tensor w;   // [out, in]
  Tensor dx;  // [rows, in]

  void check() const;
  void operands(auto visit) {
    visit("dy", dy, Role::input);
    visit("w", w, Role::input);
    visit("dx", dx, Role::output);
  }
};

/// dw += transpose(dy) * x; d_bias += column sums of dy.
struct LinearBackwardWeight {
  static constexpr const char* name = "linear_backward_weight";
  Tensor dy;        // [rows, out]
  Tensor x;         // [rows, in]
  Tensor dw;        // f32 [out, in]
  Tensor d_bias{};  // f32 [out], or empty

  void check() const;
  void operands(auto visit) {
    visit("dy", dy, Role::input);
    visit("x", x, Role::input);
    visit("dw", dw, Role::in_out);
    visit("d_bias", d_bias, Role::in_out);
  }
};

/// wide = x * transpose(w) + bias; y = gelu(wide), of a `wide` that may not be rounded yet.
struct LinearGeluForward {
  static constexpr const char* name = "linear_gelu_forward";
  Tensor x;       // [rows, in]
  Tensor w;       // [out, in]
  Tensor bias{};  // [out], or empty
  Tensor wide;    // [rows, out]
  Tensor y;       // [rows, out]

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("w", w, Role::input);
    visit("bias", bias, Role::input);
    visit("wide", wide, Role::output);
    visit("y", y, Role::output);
  }
};

/// d_wide = gelu'(wide) * (dy * w): the gradient of what a gelu before a linear layer took.
struct LinearBackwardGelu {
  static constexpr const char* name = "linear_backward_gelu";
  Tensor dy;      // [rows, out]
  Tensor w;       // [out, in]
  Tensor wide;    // [rows, in]
  Tensor d_wide;  // [rows, in]

  void check() const;
  void operands(auto visit) {
    visit("dy", dy, Role::input);
    visit("w", w, Role::input);
    visit("wide", wide, Role::input);
    visit("d_wide", d_wide, Role::output);
  }
};

/// y = (x * transpose(w)) * both unscales + bias; bias and y are bf16.
struct LinearForwardQuantised {
  static constexpr const char* name = "linear_forward_quantised";
  Quantised x;    // [rows, in]
  Quantised w;    // [out, in]
  Tensor bias{};  // [out], or empty
  Tensor y;       // [rows, out]

  void check() const;
  void operands(auto visit) {
    visit("x", x.codes, Role::input);
    visit("x_unscale", x.unscale, Role::input);
    visit("w", w.codes, Role::input);
    visit("w_unscale", w.unscale, Role::input);
    visit("bias", bias, Role::input);
    visit("y", y, Role::output);
  }
};

/// Operations that multiply matrices; most backends ask a library.
using GemmOperations = OperationList<LinearForward, LinearBackwardInput, LinearBackwardWeight,
                                     LinearGeluForward, LinearBackwardGelu, LinearForwardQuantised>;

}  // namespace trireme::device
