// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

#include "layers/layer_part.hpp"
#include "layers/weights.hpp"

namespace trireme::layers {

/// y = x * transpose(matrix.weight) + bias, with the context's number format for layers' GEMMs.
/// With FP8 it is collective over the tensor-parallel group, joined: a tensor of which ranks hold
/// parts has one scale, so that no layout changes the values of codes. Copies live in the workspace
/// while the GEMM runs, but for a weight's that is kept.
void linear_forward(const StageContext& context, const device::Tensor& x, const Matrix& matrix,
                    const device::Tensor& bias, const device::Tensor& y);

/// Adds the gradients of a matrix's rows, and of its bias, of those columns of d_y.
void add_weight_gradient(const StageContext& context, const device::Tensor& d_y,
                         const device::Tensor& x, const Matrix& matrix, WideColumns columns);

}  // namespace trireme::layers
