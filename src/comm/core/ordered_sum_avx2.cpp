// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX2: includes nothing whose inline functions other files share.
#include <immintrin.h>

#include <cstdint>

namespace trireme::comm::avx2 {
namespace {

__m256 widen(const std::uint16_t* from) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

/// Nearest, ties to even; a NaN stays a NaN: device::to_bf16 for eight values.
__m128i narrow(__m256 values) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
  const __m256i chosen = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
}

}  // namespace

std::int64_t sum_f32(const void* const* inputs, int input_count, float* out, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const float* first = static_cast<const float*>(inputs[0]) + i;
    __m256 a = _mm256_loadu_ps(first);
    __m256 b = _mm256_loadu_ps(first + 8);
    __m256 c = _mm256_loadu_ps(first + 16);
    __m256 d = _mm256_loadu_ps(first + 24);
    for (int input = 1; input < input_count; ++input) {
      const float* next = static_cast<const float*>(inputs[input]) + i;
      a = _mm256_add_ps(a, _mm256_loadu_ps(next));
      b = _mm256_add_ps(b, _mm256_loadu_ps(next + 8));
      c = _mm256_add_ps(c, _mm256_loadu_ps(next + 16));
      d = _mm256_add_ps(d, _mm256_loadu_ps(next + 24));
    }
    _mm256_storeu_ps(out + i, a);
    _mm256_storeu_ps(out + i + 8, b);
    _mm256_storeu_ps(out + i + 16, c);
    _mm256_storeu_ps(out + i + 24, d);
  }
  return i;
}

std::int64_t sum_bf16(const void* const* inputs, int input_count, std::uint16_t* out,
                      std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const auto* first = static_cast<const std::uint16_t*>(inputs[0]) + i;
    __m256 a = widen(first);
    __m256 b = widen(first + 8);
    for (int input = 1; input < input_count; ++input) {
      const auto* next = static_cast<const std::uint16_t*>(inputs[input]) + i;
      a = _mm256_add_ps(a, widen(next));
      b = _mm256_add_ps(b, widen(next + 8));
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), narrow(a));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i + 8), narrow(b));
  }
  return i;
}

}  // namespace trireme::comm::avx2
