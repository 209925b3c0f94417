// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/model/stage_context.hpp"

#include "model/weights.hpp"

namespace trireme::model {

/// y = x * transpose(matrix.weight) + bias, as the context wants layers' products. With FP8 it is
/// collective over the tensor-parallel group, joined: a tensor of which ranks hold parts has one
/// scale, so that no layout changes what codes say. Copies live in the workspace while the product
/// runs, but for a weight's that is kept.
void linear_forward(const StageContext& context, const device::Tensor& x, const Matrix& matrix,
                    const device::Tensor& bias, const device::Tensor& y);

}  // namespace trireme::model
