// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <cstdint>
#include <span>

namespace trireme::comm {

/// out[i] = inputs[0][i] + inputs[1][i] + … in this order: in fp32, rounded once to bf16 (i32 in
/// 32 bits, wrapping). Maximum keeps a NaN. `out` may be one of the inputs. The same bits from
/// every instruction set.
void reduce_in_order(ReduceOp op, device::DType dtype, std::span<const void* const> inputs,
                     void* out, std::int64_t count);

/// The instruction sets that reduce_in_order chooses from.
enum class Instructions { portable, avx2, avx512 };
Instructions best_instructions();
const char* name(Instructions instructions);
/// Variant for tests with a given instruction set, which the machine must have.
void reduce_in_order(Instructions instructions, ReduceOp op, device::DType dtype,
                     std::span<const void* const> inputs, void* out, std::int64_t count);

/// Sums of whole vectors; each returns how many elements it did, the rest is the caller's.
/// In files of their own, because each is compiled for its instruction set.
namespace avx2 {
std::int64_t sum_f32(const void* const* inputs, int input_count, float* out, std::int64_t count);
std::int64_t sum_bf16(const void* const* inputs, int input_count, std::uint16_t* out,
                      std::int64_t count);
}  // namespace avx2
namespace avx512 {
std::int64_t sum_f32(const void* const* inputs, int input_count, float* out, std::int64_t count);
std::int64_t sum_bf16(const void* const* inputs, int input_count, std::uint16_t* out,
                      std::int64_t count);
}  // namespace avx512

}  // namespace trireme::comm
