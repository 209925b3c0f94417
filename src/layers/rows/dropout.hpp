// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

namespace trireme::layers {

/// to = from, the residual stream's local rows from `first` on, under the mask of one place of the
/// model ("dropout.mlp" of layer 3): the same numbers in every layout.
void apply_residual_dropout(const StageContext& context, const MicroBatch& batch, const char* site,
                            int layer, const device::Tensor& from, const device::Tensor& to,
                            std::int64_t first = 0);

}  // namespace trireme::layers
