// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512: includes nothing whose inline functions other files share.
#include <immintrin.h>

#include <cstdint>

namespace trireme::comm::avx512 {
namespace {

__m512 widen(const std::uint16_t* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

/// Nearest, ties to even; a NaN stays a NaN: device::to_bf16 for sixteen values.
__m256i narrow(__m512 values) {
  const __m512i bits = _mm512_castps_si512(values);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q);
  const __m512i chosen = _mm512_mask_blend_epi32(is_nan, rounded, quiet);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(chosen, 16));
}

}  // namespace

std::int64_t sum_f32(const void* const* inputs, int input_count, float* out, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const float* first = static_cast<const float*>(inputs[0]) + i;
    __m512 a = _mm512_loadu_ps(first);
    __m512 b = _mm512_loadu_ps(first + 16);
    __m512 c = _mm512_loadu_ps(first + 32);
    __m512 d = _mm512_loadu_ps(first + 48);
    for (int input = 1; input < input_count; ++input) {
      const float* next = static_cast<const float*>(inputs[input]) + i;
      a = _mm512_add_ps(a, _mm512_loadu_ps(next));
      b = _mm512_add_ps(b, _mm512_loadu_ps(next + 16));
      c = _mm512_add_ps(c, _mm512_loadu_ps(next + 32));
      d = _mm512_add_ps(d, _mm512_loadu_ps(next + 48));
    }
    _mm512_storeu_ps(out + i, a);
    _mm512_storeu_ps(out + i + 16, b);
    _mm512_storeu_ps(out + i + 32, c);
    _mm512_storeu_ps(out + i + 48, d);
  }
  return i;
}

std::int64_t sum_bf16(const void* const* inputs, int input_count, std::uint16_t* out,
                      std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const auto* first = static_cast<const std::uint16_t*>(inputs[0]) + i;
    __m512 a = widen(first);
    __m512 b = widen(first + 16);
    for (int input = 1; input < input_count; ++input) {
      const auto* next = static_cast<const std::uint16_t*>(inputs[input]) + i;
      a = _mm512_add_ps(a, widen(next));
      b = _mm512_add_ps(b, widen(next + 16));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), narrow(a));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i + 16), narrow(b));
  }
  return i;
}

}  // namespace trireme::comm::avx512
