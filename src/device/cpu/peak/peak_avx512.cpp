// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512, as CMakeLists.txt says.
#include "device/cpu/peak/peak.hpp"

#include <immintrin.h>

namespace trireme::device::cpu {

std::int64_t fma_rounds_avx512(std::int64_t rounds) {
  constexpr int chains = 16;
  constexpr std::int64_t lanes = 16;
  __m512 sums[chains];
  for (auto& sum : sums) sum = _mm512_set1_ps(1.0F);
  __m512 a = _mm512_set1_ps(0.999F);
  const __m512 b = _mm512_set1_ps(0.001F);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (auto& sum : sums) sum = _mm512_fmadd_ps(sum, a, b);
    asm volatile("" : "+v"(a));
  }
  for (const auto& sum : sums) asm volatile("" : : "v"(sum));
  return rounds * chains * lanes * 2;
}

}  // namespace trireme::device::cpu
