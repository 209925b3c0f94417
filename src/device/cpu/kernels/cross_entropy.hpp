// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"

#include "device/cpu/runtime/context.hpp"

#include <cstdint>

/// See Kernels for arguments and meaning.
namespace trireme::device::cpu {

void cross_entropy_stats(const Context& context, const Tensor& logits, const Tensor& targets,
                         std::int64_t first_token, const Tensor& stats);
void cross_entropy_gradient(const Context& context, const Tensor& logits, const Tensor& targets,
                            std::int64_t first_token, const Tensor& lse, float scale);

}  // namespace trireme::device::cpu
