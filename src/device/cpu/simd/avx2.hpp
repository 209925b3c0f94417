// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/dtype.hpp"

#include <immintrin.h>

#include <cstdint>

/// Include only from files compiled for AVX2 and FMA. The namespace keeps these functions, and
/// every template made with this Vec, apart from those of other CPUs.
namespace trireme::device::cpu::avx2 {

/// Eight floats.
struct Vec {
  static constexpr std::int64_t width = 8;
  __m256 v;

  static Vec zero() { return {_mm256_setzero_ps()}; }
  static Vec of(float value) { return {_mm256_set1_ps(value)}; }

  static Vec load(const float* from) { return {_mm256_loadu_ps(from)}; }
  static Vec load(const Bf16* from) {
    return widened(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  /// The first `count` < width elements; the others are zero and their memory is not touched.
  static Vec load(const float* from, std::int64_t count) {
    return {_mm256_maskload_ps(from, mask(count))};
  }
  static Vec load(const Bf16* from, std::int64_t count) {
    alignas(16) Bf16 lanes[width] = {};
    for (std::int64_t i = 0; i < count; ++i) lanes[i] = from[i];
    return widened(_mm_load_si128(reinterpret_cast<const __m128i*>(lanes)));
  }

  void store(float* to) const { _mm256_storeu_ps(to, v); }
  void store(Bf16* to) const { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), narrowed()); }
  void store(float* to, std::int64_t count) const { _mm256_maskstore_ps(to, mask(count), v); }
  void store(Bf16* to, std::int64_t count) const {
    alignas(16) Bf16 lanes[width];
    _mm_store_si128(reinterpret_cast<__m128i*>(lanes), narrowed());
    for (std::int64_t i = 0; i < count; ++i) to[i] = lanes[i];
  }
  /// The first `count` lanes of this, the others of `other`.
  Vec first(std::int64_t count, Vec other) const {
    return {_mm256_blendv_ps(other.v, v, _mm256_castsi256_ps(mask(count)))};
  }

  /// Uniform in [0, 1) with 24 bits, as base::uniform_from_bits.
  static Vec uniform(__m256i bits) {
    return {
        _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(bits, 8)), _mm256_set1_ps(0x1.0p-24F))};
  }

  static __m256i mask(std::int64_t count) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lanes);
  }

 private:
  static Vec widened(__m128i halves) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16))};
  }
  /// bf16 of each lane: nearest, ties to even; a NaN stays a NaN.
  __m128i narrowed() const {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, nan);
    const __m256i packed = _mm256_packus_epi32(chosen, chosen);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
  }
};

inline Vec operator+(Vec a, Vec b) {
  return {_mm256_add_ps(a.v, b.v)};
}
inline Vec operator-(Vec a, Vec b) {
  return {_mm256_sub_ps(a.v, b.v)};
}
inline Vec operator*(Vec a, Vec b) {
  return {_mm256_mul_ps(a.v, b.v)};
}
inline Vec operator/(Vec a, Vec b) {
  return {_mm256_div_ps(a.v, b.v)};
}
/// a * b + c and c - a * b, rounded once.
inline Vec fma(Vec a, Vec b, Vec c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
inline Vec fnma(Vec a, Vec b, Vec c) {
  return {_mm256_fnmadd_ps(a.v, b.v, c.v)};
}
/// The second argument when either is a NaN.
inline Vec max(Vec a, Vec b) {
  return {_mm256_max_ps(a.v, b.v)};
}
inline Vec min(Vec a, Vec b) {
  return {_mm256_min_ps(a.v, b.v)};
}
inline Vec sqrt(Vec a) {
  return {_mm256_sqrt_ps(a.v)};
}
inline Vec round(Vec a) {
  return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
/// 1 / a. (The estimate of this instruction set has 12 bits: refining it costs what dividing does.)
inline Vec reciprocal(Vec a) {
  return {_mm256_div_ps(_mm256_set1_ps(1.0F), a.v)};
}
/// a * 2^n for whole n in [-127, 128]: zero at -127, infinity at 128.
inline Vec scale_by_power(Vec a, Vec n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127));
  return {_mm256_mul_ps(a.v, _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23)))};
}

/// value where a >= b, else 0.
inline Vec where_at_least(Vec a, Vec b, Vec value) {
  return {_mm256_and_ps(_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ), value.v)};
}

/// Sum of all lanes, in an order that never changes.
inline float sum(Vec a) {
  const __m128 quarters = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 pairs = _mm_add_ps(quarters, _mm_movehl_ps(quarters, quarters));
  return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_movehdup_ps(pairs)));
}
inline float first_lane(Vec a) {
  return _mm256_cvtss_f32(a.v);
}
inline float largest(Vec a) {
  const __m128 quarters = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 pairs = _mm_max_ps(quarters, _mm_movehl_ps(quarters, quarters));
  return _mm_cvtss_f32(_mm_max_ss(pairs, _mm_movehdup_ps(pairs)));
}

/// Four doubles.
struct Doubles {
  static constexpr std::int64_t width = 4;
  static constexpr std::int64_t registers = 16;
  __m256d v;

  static Doubles of(double value) { return {_mm256_set1_pd(value)}; }
  static Doubles load(const double* from) { return {_mm256_loadu_pd(from)}; }
  void store(double* to) const { _mm256_storeu_pd(to, v); }
  /// a * b + c, rounded once.
  friend Doubles fma(Doubles a, Doubles b, Doubles c) { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }
};

/// Sums of squares in double.
struct SquareSums {
  __m256d low = _mm256_setzero_pd();
  __m256d high = _mm256_setzero_pd();

  void add(__m256 x) {
    const __m256d first = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    const __m256d second = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
    low = _mm256_fmadd_pd(first, first, low);
    high = _mm256_fmadd_pd(second, second, high);
  }
  double total() const {
    const __m256d both = _mm256_add_pd(low, high);
    const __m128d pairs = _mm_add_pd(_mm256_castpd256_pd128(both), _mm256_extractf128_pd(both, 1));
    return _mm_cvtsd_f64(_mm_add_sd(pairs, _mm_unpackhi_pd(pairs, pairs)));
  }
};

/// Four 32-bit words, each in the lower half of a 64-bit lane; the upper halves hold leftovers.
struct Words {
  static constexpr int count = 4;
  __m256i v;

  static Words of(std::uint32_t value) { return {_mm256_set1_epi64x(static_cast<int>(value))}; }
  /// Lower halves of `first` plus the place of each lane: the numbers 0 and 1 go to the even lanes,
  /// 2 and 3 to the odd ones, as `pair_up` expects them. The upper halves are those of the sums.
  static Words counters(std::uint64_t first) {
    return {_mm256_add_epi64(_mm256_set1_epi64x(static_cast<long long>(first)),
                             _mm256_setr_epi64x(0, 2, 1, 3))};
  }
  /// The upper halves.
  Words high() const { return {_mm256_srli_epi64(v, 32)}; }
  /// 64-bit products.
  friend Words operator*(Words a, Words b) { return {_mm256_mul_epu32(a.v, b.v)}; }
  friend Words operator^(Words a, Words b) { return {_mm256_xor_si256(a.v, b.v)}; }
};

/// Four words of each of four counters as 16 neighbouring words, counter by counter.
inline void pair_up(const Words (&words)[4], __m256i (&out)[2]) {
  const auto interleave = [](Words even, Words odd) {
    return _mm256_blend_epi32(even.v, _mm256_slli_epi64(odd.v, 32), 0xAA);
  };
  const __m256i first = interleave(words[0], words[1]);
  const __m256i second = interleave(words[2], words[3]);
  out[0] = _mm256_unpacklo_epi64(first, second);
  out[1] = _mm256_unpackhi_epi64(first, second);
}

/// Instruction set with which the templates of this folder are instantiated.
struct Instructions {
  using Vec = avx2::Vec;
  using Words = avx2::Words;
  using Bits = __m256i;
  using SquareSums = avx2::SquareSums;
  using Doubles = avx2::Doubles;
};

}  // namespace trireme::device::cpu::avx2
