// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"

#include "device/cpu/runtime/context.hpp"

/// See Kernels for arguments and meaning.
namespace trireme::device::cpu {

void fill(const Context& context, const Tensor& x, float value);
void copy(const Context& context, const Tensor& from, const Tensor& to);
void add(const Context& context, const Tensor& x, const Tensor& y, const Tensor& z);
void accumulate(const Context& context, const Tensor& x, const Tensor& sum);
double sum_of_squares(const Context& context, const Tensor& x);

/// sums += the sum of each column of x: the gradient of a bias. Rows are added in chunks whose
/// number follows from the shape alone, the chunks in a fixed tree.
void add_column_sums(Context& context, const Tensor& x,  // [rows..., width]
                     const Tensor& sums);                // f32 [width]

}  // namespace trireme::device::cpu
