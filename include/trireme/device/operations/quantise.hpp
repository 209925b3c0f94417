// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/tensor.hpp"

namespace trireme::device {

// GEMMs in FP8, with one scale a tensor, that of the numbers at hand. Sums are in fp32. What is not
// finite becomes NaN, and so does all that is multiplied by it.

/// A tensor times a power of two, rounded to e4m3, and the factor that undoes it.
struct Quantised {
  Tensor codes;    // e4m3, contiguous
  Tensor unscale;  // f32 [1]
};

/// magnitude = the largest |x|; NaN or infinite if an element is.
struct LargestMagnitude {
  static constexpr const char* name = "largest_magnitude";
  Tensor x;
  Tensor magnitude;  // f32 [1]

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("magnitude", magnitude, Role::output);
  }
};

/// codes = x * e4m3_scale(magnitude), rounded; unscale undoes it. A magnitude below that of x
/// saturates.
struct Quantise {
  static constexpr const char* name = "quantise";
  Tensor x;
  Tensor magnitude;  // f32 [1]
  Quantised result;  // like x

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("magnitude", magnitude, Role::input);
    visit("codes", result.codes, Role::output);
    visit("unscale", result.unscale, Role::output);
  }
};

using QuantiseOperations = OperationList<LargestMagnitude, Quantise>;

}  // namespace trireme::device
