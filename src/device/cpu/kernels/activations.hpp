// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include "device/cpu/runtime/context.hpp"

#include <cstdint>

/// See Kernels for arguments and meaning.
namespace trireme::device::cpu {

void swiglu_forward(const Context& context, const Tensor& gate, const Tensor& up, const Tensor& y);
void swiglu_backward(const Context& context, const Tensor& dy, const Tensor& gate, const Tensor& up,
                     const Tensor& d_gate, const Tensor& d_up);
void gelu_forward(const Context& context, const Tensor& x, const Tensor& y);
void gelu_backward(const Context& context, const Tensor& dy, const Tensor& x, const Tensor& dx);
void dropout(const Context& context, const Tensor& x, const Dropout& dropout, const Tensor& y);
void rotary(const Context& context, const Tensor& x, const Tensor& cos_table,
            const Tensor& sin_table, std::int64_t first_position, bool inverse);

}  // namespace trireme::device::cpu
