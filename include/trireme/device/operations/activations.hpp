// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/dropout.hpp"
#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/tensor.hpp"

#include <cstdint>

namespace trireme::device {

/// Rotates pairs (i, i + head_dim / 2) of every head in place (Su et al. 2021, half-split as in
/// Llama). `inverse` rotates back: the gradient. Position of row s of a sequence is
/// first_position + s.
struct Rotary {
  static constexpr const char* name = "rotary";
  Tensor x;          // [batch, seq, heads, head_dim]
  Tensor cos_table;  // f32 [positions, head_dim / 2]
  Tensor sin_table;  // like cos_table
  std::int64_t first_position = 0;
  bool inverse = false;

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::in_out);
    visit("cos_table", cos_table, Role::input);
    visit("sin_table", sin_table, Role::input);
  }
};

/// y = silu(gate) * up.
struct SwigluForward {
  static constexpr const char* name = "swiglu_forward";
  Tensor gate;
  Tensor up;  // like gate
  Tensor y;   // like gate

  void check() const;
  void operands(auto visit) {
    visit("gate", gate, Role::input);
    visit("up", up, Role::input);
    visit("y", y, Role::output);
  }
};

struct SwigluBackward {
  static constexpr const char* name = "swiglu_backward";
  Tensor dy;
  Tensor gate;    // like dy
  Tensor up;      // like dy
  Tensor d_gate;  // like dy; may be gate itself
  Tensor d_up;    // like dy; may be up itself

  void check() const;
  void operands(auto visit) {
    visit("dy", dy, Role::input);
    visit("gate", gate, Role::input);
    visit("up", up, Role::input);
    visit("d_gate", d_gate, Role::output);
    visit("d_up", d_up, Role::output);
  }
};

/// y = gelu(x), in the tanh form (Hendrycks & Gimpel 2016), GPT-2's.
struct GeluForward {
  static constexpr const char* name = "gelu_forward";
  Tensor x;
  Tensor y;  // like x

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("y", y, Role::output);
  }
};

/// dx = gelu'(x) * dy.
struct GeluBackward {
  static constexpr const char* name = "gelu_backward";
  Tensor dy;
  Tensor x;   // like dy
  Tensor dx;  // like dy; may be dy

  void check() const;
  void operands(auto visit) {
    visit("dy", dy, Role::input);
    visit("x", x, Role::input);
    visit("dx", dx, Role::output);
  }
};

/// y = x kept with probability 1 - rate and divided by it; also its own backward.
struct ApplyDropout {
  static constexpr const char* name = "dropout";
  Tensor x;
  Dropout mask;
  Tensor y;  // like x; may be x

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("row_base", mask.row_base, Role::input);
    visit("y", y, Role::output);
  }
};

using ActivationOperations =
    OperationList<Rotary, SwigluForward, SwigluBackward, GeluForward, GeluBackward, ApplyDropout>;

}  // namespace trireme::device
