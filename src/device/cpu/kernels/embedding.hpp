// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"

#include "device/cpu/runtime/context.hpp"

#include <cstdint>

/// See Kernels for arguments and meaning.
namespace trireme::device::cpu {

void embedding_forward(const Context& context, const Tensor& tokens, const Tensor& table,
                       std::int64_t first_token, const Tensor& out);
void embedding_backward(const Context& context, const Tensor& tokens, const Tensor& d_out,
                        std::int64_t first_token, const Tensor& d_table);
void add_positions(const Context& context, const Tensor& x, const Tensor& table, std::int64_t seq,
                   std::int64_t first_position);
void add_positions_backward(const Context& context, const Tensor& dx, std::int64_t seq,
                            const Tensor& d_table);

}  // namespace trireme::device::cpu
