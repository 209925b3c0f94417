// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Loops that multiply and add in registers alone, one file for each set of instructions: what no
/// GEMM can be faster than. Each makes `rounds` rounds and returns its operations.
namespace trireme::device::cpu {

std::int64_t fma_rounds_avx2(std::int64_t rounds);
std::int64_t fma_rounds_avx512(std::int64_t rounds);
/// Products of pairs of bf16, added in fp32 (VDPBF16PS).
std::int64_t dot_rounds_avx512_bf16(std::int64_t rounds);
/// Products of 16 x 32 by 32 x 16 tiles of bf16 (TDPBF16PS).
std::int64_t tile_rounds_amx(std::int64_t rounds);

}  // namespace trireme::device::cpu
