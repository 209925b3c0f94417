#pragma once

#include "trireme/device/dtype.hpp"

#include <immintrin.h>

#include <cstdint>

/// Include only from files compiled for AVX-512 F, BW, DQ and VL. The namespace keeps these
/// functions, and every template made with this Vec, apart from those of narrower CPUs.
namespace trireme::device::cpu::avx512 {

/// Sixteen floats.
struct Vec {
  static constexpr std::int64_t width = 16;
  __m512 v;

  static Vec zero() { return {_mm512_setzero_ps()}; }
  static Vec of(float value) { return {_mm512_set1_ps(value)}; }

  static Vec load(const float* from) { return {_mm512_loadu_ps(from)}; }
  static Vec load(const Bf16* from) {
    return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  /// The first `count` < width elements; the others are zero and their memory is not touched.
  static Vec load(const float* from, std::int64_t count) {
    return {_mm512_maskz_loadu_ps(mask(count), from)};
  }
  static Vec load(const Bf16* from, std::int64_t count) {
    return widened(_mm256_maskz_loadu_epi16(mask(count), from));
  }

  void store(float* to) const { _mm512_storeu_ps(to, v); }
  void store(Bf16* to) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), narrowed()); }
  void store(float* to, std::int64_t count) const { _mm512_mask_storeu_ps(to, mask(count), v); }
  void store(Bf16* to, std::int64_t count) const {
    _mm256_mask_storeu_epi16(to, mask(count), narrowed());
  }
  /// Past the caches, for a multiple of 64 (f32) or 32 (bf16) bytes that nobody reads soon.
  void stream(float* to) const { _mm512_stream_ps(to, v); }
  void stream(Bf16* to) const { _mm256_stream_si256(reinterpret_cast<__m256i*>(to), narrowed()); }

  /// The first `count` lanes of this, the others of `other`.
  Vec first(std::int64_t count, Vec other) const {
    return {_mm512_mask_blend_ps(mask(count), other.v, v)};
  }

  static __mmask16 mask(std::int64_t count) {
    return static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U);
  }

 private:
  static Vec widened(__m256i halves) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))};
  }
  /// To bf16: nearest, ties to even; a NaN stays a NaN.
  __m256i narrowed() const {
#ifdef __AVX512BF16__
    return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v));
#else
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
    const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, nan, quiet));
#endif
  }
};

inline Vec operator+(Vec a, Vec b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline Vec operator-(Vec a, Vec b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline Vec operator*(Vec a, Vec b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline Vec operator/(Vec a, Vec b) {
  return {_mm512_div_ps(a.v, b.v)};
}
/// a * b + c and c - a * b, rounded once.
inline Vec fma(Vec a, Vec b, Vec c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline Vec fnma(Vec a, Vec b, Vec c) {
  return {_mm512_fnmadd_ps(a.v, b.v, c.v)};
}
/// The second argument when either is a NaN.
inline Vec max(Vec a, Vec b) {
  return {_mm512_max_ps(a.v, b.v)};
}
inline Vec min(Vec a, Vec b) {
  return {_mm512_min_ps(a.v, b.v)};
}
inline Vec sqrt(Vec a) {
  return {_mm512_sqrt_ps(a.v)};
}
inline Vec round(Vec a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
/// a * 2^n for whole n, however large.
inline Vec scale_by_power(Vec a, Vec n) {
  return {_mm512_scalef_ps(a.v, n.v)};
}

/// value where a >= b, else 0.
inline Vec where_at_least(Vec a, Vec b, Vec value) {
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ), value.v)};
}

/// Sum of all lanes, in an order that never changes.
inline float sum(Vec a) {
  const __m256 halves = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 quarters =
      _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
  const __m128 pairs = _mm_add_ps(quarters, _mm_movehl_ps(quarters, quarters));
  return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_movehdup_ps(pairs)));
}
inline float first_lane(Vec a) {
  return _mm512_cvtss_f32(a.v);
}
inline float largest(Vec a) {
  return _mm512_reduce_max_ps(a.v);
}

/// Sums of squares in double.
struct SquareSums {
  __m512d low = _mm512_setzero_pd();
  __m512d high = _mm512_setzero_pd();

  void add(Vec x) {
    const __m512d first = _mm512_cvtps_pd(_mm512_castps512_ps256(x.v));
    const __m512d second = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x.v, 1));
    low = _mm512_fmadd_pd(first, first, low);
    high = _mm512_fmadd_pd(second, second, high);
  }
  double total() const { return _mm512_reduce_add_pd(_mm512_add_pd(low, high)); }
};

/// Sixteen 32-bit words.
struct Words {
  static constexpr int groups = 4;  // of four words: what unpacking works within
  __m512i v;

  static Words of(std::uint32_t value) { return {_mm512_set1_epi32(static_cast<int>(value))}; }
  static Words load(const std::uint32_t* from) { return {_mm512_loadu_si512(from)}; }
};

inline Words operator^(Words a, Words b) {
  return {_mm512_xor_si512(a.v, b.v)};
}

struct WideProduct {
  Words high;
  Words low;
};
/// The 64-bit products of the words with one factor.
inline WideProduct multiply_wide(Words a, std::uint32_t factor) {
  const __m512i b = _mm512_set1_epi32(static_cast<int>(factor));
  const __m512i even = _mm512_mul_epu32(a.v, b);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.v, 32), b);
  return {{_mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd)},
          {_mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32))}};
}

/// Uniform in [0, 1) with 24 bits, as base::uniform_from_bits.
inline Vec uniform(Words bits) {
  return {
      _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_srli_epi32(bits.v, 8)), _mm512_set1_ps(0x1.0p-24F))};
}

/// Inside every group of four lanes, transposes the 4 x 4 matrix of four vectors.
inline void transpose_groups(Words (&rows)[4]) {
  const __m512i low01 = _mm512_unpacklo_epi32(rows[0].v, rows[1].v);
  const __m512i high01 = _mm512_unpackhi_epi32(rows[0].v, rows[1].v);
  const __m512i low23 = _mm512_unpacklo_epi32(rows[2].v, rows[3].v);
  const __m512i high23 = _mm512_unpackhi_epi32(rows[2].v, rows[3].v);
  rows[0].v = _mm512_unpacklo_epi64(low01, low23);
  rows[1].v = _mm512_unpackhi_epi64(low01, low23);
  rows[2].v = _mm512_unpacklo_epi64(high01, high23);
  rows[3].v = _mm512_unpackhi_epi64(high01, high23);
}

/// What the templates of this folder are made with.
struct Instructions {
  using Vec = avx512::Vec;
  using Words = avx512::Words;
  using SquareSums = avx512::SquareSums;
};

}  // namespace trireme::device::cpu::avx512
