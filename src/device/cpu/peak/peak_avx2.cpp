// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX2 and FMA, as CMakeLists.txt says.
#include "device/cpu/peak/peak.hpp"

#include <immintrin.h>

namespace trireme::device::cpu {

std::int64_t fma_rounds_avx2(std::int64_t rounds) {
  // Two instructions a cycle of a latency of four, and twice as many chains to be safe.
  constexpr int chains = 12;
  constexpr std::int64_t lanes = 8;
  __m256 sums[chains];
  for (auto& sum : sums) sum = _mm256_set1_ps(1.0F);
  __m256 a = _mm256_set1_ps(0.999F);
  const __m256 b = _mm256_set1_ps(0.001F);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm256_fmadd_ps(sum, a, b);
    // The compiler must believe that every round differs.
    asm volatile("" : "+x"(a));
  }
  for (const auto& sum : sums) asm volatile("" : : "x"(sum));
  return rounds * chains * lanes * 2;
}

}  // namespace trireme::device::cpu
