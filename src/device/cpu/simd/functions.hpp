// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Functions of vectors, for any Vec of this folder. Everything here is a template over Vec, so
/// that each instruction set has its own copies.
namespace trireme::device::cpu {

/// e^r for |r| <= ln 2 / 2: a polynomial of degree 5 whose coefficients minimise the largest
/// relative error (1.1e-7 before rounding) with the first two fixed at 1.
template <typename Vec>
inline Vec small_exponential(Vec r) {
  Vec p = fma(Vec::of(0x1.10627ap-7F), r, Vec::of(0x1.572a06p-5F));
  p = fma(p, r, Vec::of(0x1.5557aep-3F));
  p = fma(p, r, Vec::of(0x1.fffdfcp-2F));
  return fma(p, r * r, r) + Vec::of(1.0F);
}

/// e^x with a relative error below 2e-7 (a test measures it). Zero below -87.4, infinity from
/// 88.8 on (AVX2: from 88.4); a NaN stays a NaN. x = n ln 2 + r with ln 2 in two parts (Cody and
/// Waite 1980).
template <typename Vec>
inline Vec exponential(Vec x) {
  // The order of the arguments keeps a NaN.
  const Vec inside = max(Vec::of(-88.0F), min(Vec::of(88.9F), x));
  const Vec n = round(inside * Vec::of(0x1.715476p+0F));
  const Vec r = fnma(n, Vec::of(0x1.7f7d1cp-20F), fnma(n, Vec::of(0x1.62e400p-1F), inside));
  return scale_by_power(small_exponential(r), n);
}

/// 1 / (1 + 2^t) with a relative error below 4e-7 + 1e-7 |t| where t itself is exact: the
/// coefficients of e^r times powers of ln 2, without the two-part reduction. Ends at 2^-126, not
/// at zero.
template <typename Vec>
inline Vec inverse_of_one_plus_power(Vec t) {
  const Vec inside = max(Vec::of(-126.0F), min(Vec::of(126.0F), t));
  const Vec n = round(inside);
  const Vec f = inside - n;
  Vec p = fma(Vec::of(0x1.5ca882p-10F), f, Vec::of(0x1.3cdb7ap-7F));
  p = fma(p, f, Vec::of(0x1.c6b3aep-5F));
  p = fma(p, f, Vec::of(0x1.ebf9f0p-3F));
  p = fma(p, f, Vec::of(0x1.62e430p-1F));
  p = fma(p, f, Vec::of(1.0F));
  return reciprocal(Vec::of(1.0F) + scale_by_power(p, n));
}

/// 1 / (1 + e^-x).
template <typename Vec>
inline Vec sigmoid(Vec x) {
  return inverse_of_one_plus_power(x * Vec::of(-0x1.715476p+0F));
}

}  // namespace trireme::device::cpu
