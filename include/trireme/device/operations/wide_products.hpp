// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/tensor.hpp"

namespace trireme::device {

// Products of f32 matrices with sums in fp64, for what loses its small eigenvalues in fp32: there a
// sum of squares is wrong by 6e-8 of its largest eigenvalue, whatever the others are. All matrices
// are f32 and contiguous; results depend on the operands alone, not on the number of threads.

/// Matrix in 48 bits an element: high + low, where `high` is the float next to the sum.
struct WideMatrix {
  Tensor high;   // f32 [rows, columns]
  Tensor low{};  // f32 [rows, columns]; or empty, as zeros are
};

/// sum = kept * sum + (1 - kept) * transpose(x) * x: a symmetric rank-k update.
struct SymmetricRankUpdate {
  static constexpr const char* name = "symmetric_rank_update";
  Tensor x;        // f32 [k, n]
  WideMatrix sum;  // [n, n], symmetric, both parts
  float kept = 0;

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("sum", sum.high, Role::in_out);
    visit("sum_low", sum.low, Role::in_out);
  }
};

/// y = x * s.
struct WideProduct {
  static constexpr const char* name = "wide_product";
  Tensor x;      // f32 [n, k]
  WideMatrix s;  // [k, m], both parts
  Tensor y;      // f32 [n, m]

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("s", s.high, Role::input);
    visit("s_low", s.low, Role::input);
    visit("y", y, Role::output);
  }
};

using WideProductOperations = OperationList<SymmetricRankUpdate, WideProduct>;

}  // namespace trireme::device
