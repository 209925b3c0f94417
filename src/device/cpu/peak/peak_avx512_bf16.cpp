// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512 with BF16, as CMakeLists.txt says.
#include "device/cpu/peak/peak.hpp"

#include <immintrin.h>

namespace trireme::device::cpu {

std::int64_t dot_rounds_avx512_bf16(std::int64_t rounds) {
  constexpr int chains = 16;
  constexpr std::int64_t pairs = 16;
  __m512 sums[chains];
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  __m512 bits = _mm512_set1_ps(0.5F);
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto operand = reinterpret_cast<__m512bh>(bits);
#pragma GCC unroll 16
    for (auto& sum : sums) sum = _mm512_dpbf16_ps(sum, operand, operand);
    asm volatile("" : "+v"(bits));
  }
  for (const auto& sum : sums) asm volatile("" : : "v"(sum));
  return rounds * chains * pairs * 4;
}

}  // namespace trireme::device::cpu
