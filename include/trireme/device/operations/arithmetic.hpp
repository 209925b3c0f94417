// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/tensor.hpp"


namespace trireme::device {

// Shapes are equal.

/// x = value.
struct Fill {
  static constexpr const char* name = "fill";
  Tensor x;
  float value = 0.0F;

  void operands(auto visit) { visit("x", x, Role::output); }
};

/// to = from, between types and strides.
struct Copy {
  static constexpr const char* name = "copy";
  Tensor from;
  Tensor to;

  void operands(auto visit) {
    visit("from", from, Role::input);
    visit("to", to, Role::output);
  }
};

/// z = x + y; any of the three may be the same.
struct Add {
  static constexpr const char* name = "add";
  Tensor x;
  Tensor y;
  Tensor z;

  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("y", y, Role::input);
    visit("z", z, Role::output);
  }
};

/// sum += x.
struct Accumulate {
  static constexpr const char* name = "accumulate";
  Tensor x;
  Tensor sum;  // f32

  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("sum", sum, Role::in_out);
  }
};

using ArithmeticOperations = OperationList<Fill, Copy, Add, Accumulate>;

}  // namespace trireme::device
