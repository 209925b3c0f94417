// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"

#include "device/cpu/runtime/context.hpp"

namespace trireme::device::cpu {

/// Sum of squares; see Kernels.
double sum_of_squares(const Context& context, const Tensor& x);

/// sums += the sum of each column of x: the gradient of a bias. Rows are added in chunks whose
/// number follows from the shape alone, the chunks in a fixed tree.
void add_column_sums(Context& context, const Tensor& x,  // [rows..., width]
                     const Tensor& sums);                // f32 [width]

}  // namespace trireme::device::cpu
