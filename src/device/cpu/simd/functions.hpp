#pragma once

/// Functions of vectors, for any Vec of this folder. Everything here is a template over Vec, so
/// that each instruction set has its own copies.
namespace trireme::device::cpu {

/// e^x with a relative error below 2e-7 (a test measures it). Zero below -87.4, infinity from
/// 88.8 on (AVX2: from 88.4); a NaN stays a NaN. x = n ln 2 + r with ln 2 in two parts (Cody and
/// Waite 1980); e^r by a polynomial of degree 6 whose coefficients minimise the largest relative
/// error on |r| <= ln 2 / 2 (3e-9 before rounding) with the first two fixed at 1.
template <typename Vec>
inline Vec exponential(Vec x) {
  // The order of the arguments keeps a NaN.
  const Vec inside = max(Vec::of(-88.0F), min(Vec::of(88.9F), x));
  const Vec n = round(inside * Vec::of(0x1.715476p+0F));
  Vec r = fnma(n, Vec::of(0x1.62e400p-1F), inside);
  r = fnma(n, Vec::of(0x1.7f7d1cp-20F), r);
  Vec p = fma(Vec::of(0x1.6a2434p-10F), r, Vec::of(0x1.1239e2p-7F));
  p = fma(p, r, Vec::of(0x1.5558f2p-5F));
  p = fma(p, r, Vec::of(0x1.555492p-3F));
  p = fma(p, r, Vec::of(0x1.fffffcp-2F));
  p = fma(p, r * r, r) + Vec::of(1.0F);
  return scale_by_power(p, n);
}

/// 1 / (1 + e^-x).
template <typename Vec>
inline Vec sigmoid(Vec x) {
  return Vec::of(1.0F) / (Vec::of(1.0F) + exponential(Vec::zero() - x));
}

}  // namespace trireme::device::cpu
