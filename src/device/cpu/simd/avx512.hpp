// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/dtype.hpp"

#include <immintrin.h>

#include <cstdint>

/// Include only from files compiled for AVX-512 F, BW, DQ and VL. The namespace keeps these
/// functions, and every template made with this Vec, apart from those of narrower CPUs.
namespace trireme::device::cpu::avx512 {

/// Rounding to bf16 with the instructions that every AVX-512 has: nearest, ties to even; a NaN
/// stays a NaN.
struct RoundInSteps {
  static __m256i narrow(__m512 v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i upper = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
    const __m512i quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, nan, quiet));
  }
};

/// Sixteen floats. Its functions are friends, so that each way of rounding has its own.
template <typename Rounding>
struct BasicVec {
  static constexpr std::int64_t width = 16;
  __m512 v;

  static BasicVec zero() { return {_mm512_setzero_ps()}; }
  static BasicVec of(float value) { return {_mm512_set1_ps(value)}; }

  static BasicVec load(const float* from) { return {_mm512_loadu_ps(from)}; }
  static BasicVec load(const Bf16* from) {
    return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  /// The first `count` < width elements; the others are zero and their memory is not touched.
  static BasicVec load(const float* from, std::int64_t count) {
    return {_mm512_maskz_loadu_ps(mask(count), from)};
  }
  static BasicVec load(const Bf16* from, std::int64_t count) {
    return widened(_mm256_maskz_loadu_epi16(mask(count), from));
  }

  void store(float* to) const { _mm512_storeu_ps(to, v); }
  void store(Bf16* to) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), Rounding::narrow(v));
  }
  void store(float* to, std::int64_t count) const { _mm512_mask_storeu_ps(to, mask(count), v); }
  void store(Bf16* to, std::int64_t count) const {
    _mm256_mask_storeu_epi16(to, mask(count), Rounding::narrow(v));
  }

  /// The first `count` lanes of this, the others of `other`.
  BasicVec first(std::int64_t count, BasicVec other) const {
    return {_mm512_mask_blend_ps(mask(count), other.v, v)};
  }
  static __mmask16 mask(std::int64_t count) {
    return static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U);
  }
  /// Uniform in [0, 1) with 24 bits, as base::uniform_from_bits.
  static BasicVec uniform(__m512i bits) {
    return {
        _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_srli_epi32(bits, 8)), _mm512_set1_ps(0x1.0p-24F))};
  }

  friend BasicVec operator+(BasicVec a, BasicVec b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend BasicVec operator-(BasicVec a, BasicVec b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend BasicVec operator*(BasicVec a, BasicVec b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend BasicVec operator/(BasicVec a, BasicVec b) { return {_mm512_div_ps(a.v, b.v)}; }
  /// a * b + c and c - a * b, rounded once.
  friend BasicVec fma(BasicVec a, BasicVec b, BasicVec c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
  }
  friend BasicVec fnma(BasicVec a, BasicVec b, BasicVec c) {
    return {_mm512_fnmadd_ps(a.v, b.v, c.v)};
  }
  /// The second argument when either is a NaN.
  friend BasicVec max(BasicVec a, BasicVec b) { return {_mm512_max_ps(a.v, b.v)}; }
  friend BasicVec min(BasicVec a, BasicVec b) { return {_mm512_min_ps(a.v, b.v)}; }
  friend BasicVec sqrt(BasicVec a) { return {_mm512_sqrt_ps(a.v)}; }
  friend BasicVec round(BasicVec a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  /// 1 / a with a relative error below 1.2e-7, for 2^-126 <= |a| <= 2^126: an estimate of 14 bits
  /// and one Newton step, a third of the time of a division.
  friend BasicVec reciprocal(BasicVec a) {
    const __m512 estimate = _mm512_rcp14_ps(a.v);
    const __m512 error = _mm512_fnmadd_ps(a.v, estimate, _mm512_set1_ps(1.0F));
    return {_mm512_fmadd_ps(estimate, error, estimate)};
  }
  /// a * 2^n for whole n, however large.
  friend BasicVec scale_by_power(BasicVec a, BasicVec n) { return {_mm512_scalef_ps(a.v, n.v)}; }
  /// value where a >= b, else 0.
  friend BasicVec where_at_least(BasicVec a, BasicVec b, BasicVec value) {
    return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ), value.v)};
  }

  /// Sum of all lanes, in an order that never changes.
  friend float sum(BasicVec a) {
    const __m256 halves =
        _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 quarters =
        _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
    const __m128 pairs = _mm_add_ps(quarters, _mm_movehl_ps(quarters, quarters));
    return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_movehdup_ps(pairs)));
  }
  friend float first_lane(BasicVec a) { return _mm512_cvtss_f32(a.v); }
  friend float largest(BasicVec a) { return _mm512_reduce_max_ps(a.v); }

 private:
  static BasicVec widened(__m256i halves) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))};
  }
};

/// Eight doubles.
struct Doubles {
  static constexpr std::int64_t width = 8;
  static constexpr std::int64_t registers = 32;
  __m512d v;

  static Doubles of(double value) { return {_mm512_set1_pd(value)}; }
  static Doubles load(const double* from) { return {_mm512_loadu_pd(from)}; }
  void store(double* to) const { _mm512_storeu_pd(to, v); }
  /// a * b + c, rounded once.
  friend Doubles fma(Doubles a, Doubles b, Doubles c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
};

/// Sums of squares in double.
struct SquareSums {
  __m512d low = _mm512_setzero_pd();
  __m512d high = _mm512_setzero_pd();

  void add(__m512 x) {
    const __m512d first = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    const __m512d second = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
    low = _mm512_fmadd_pd(first, first, low);
    high = _mm512_fmadd_pd(second, second, high);
  }
  double total() const { return _mm512_reduce_add_pd(_mm512_add_pd(low, high)); }
};

/// Eight 32-bit words, each in the lower half of a 64-bit lane; the upper halves hold leftovers.
struct Words {
  static constexpr int count = 8;
  __m512i v;

  static Words of(std::uint32_t value) { return {_mm512_set1_epi64(static_cast<int>(value))}; }
  /// Lower halves of `first` plus the place of each lane: the numbers 0 to 3 go to the even lanes,
  /// 4 to 7 to the odd ones, as `pair_up` expects them. The upper halves are those of the sums.
  static Words counters(std::uint64_t first) {
    return {_mm512_add_epi64(_mm512_set1_epi64(static_cast<long long>(first)),
                             _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7))};
  }
  /// The upper halves.
  Words high() const { return {_mm512_srli_epi64(v, 32)}; }
  /// 64-bit products.
  friend Words operator*(Words a, Words b) { return {_mm512_mul_epu32(a.v, b.v)}; }
  friend Words operator^(Words a, Words b) { return {_mm512_xor_si512(a.v, b.v)}; }
};

/// Four words of each of eight counters as 32 neighbouring words, counter by counter.
inline void pair_up(const Words (&words)[4], __m512i (&out)[2]) {
  const auto interleave = [](Words even, Words odd) {
    return _mm512_mask_blend_epi32(0xAAAA, even.v, _mm512_slli_epi64(odd.v, 32));
  };
  const __m512i first = interleave(words[0], words[1]);
  const __m512i second = interleave(words[2], words[3]);
  out[0] = _mm512_unpacklo_epi64(first, second);
  out[1] = _mm512_unpackhi_epi64(first, second);
}

/// Instruction set with which the templates of this folder are instantiated.
template <typename Rounding>
struct Instructions {
  using Vec = BasicVec<Rounding>;
  using Words = avx512::Words;
  using Bits = __m512i;
  using SquareSums = avx512::SquareSums;
  using Doubles = avx512::Doubles;
};

}  // namespace trireme::device::cpu::avx512
