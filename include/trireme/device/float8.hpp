// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

/// Numbers of eight bits for copies that GEMMs read (Micikevicius et al. 2022, "FP8 formats for
/// deep learning").
namespace trireme::device {

/// 4 exponent bits with bias 7, 3 of mantissa, no infinity: the largest is 448, the least above
/// zero 2^-9, and codes 0x7F and 0xFF are NaN.
struct E4m3 {
  std::uint8_t bits = 0;
};

constexpr float to_float(E4m3 value) {
  const auto sign = static_cast<std::uint32_t>(value.bits & 0x80U) << 24;
  const auto magnitude = static_cast<std::uint32_t>(value.bits & 0x7FU);
  if (magnitude == 0x7FU) return std::bit_cast<float>(0x7FC00000U);
  // Exponent and mantissa keep their order in a float; its bias is 120 more. Below 2^-6 the
  // mantissa counts multiples of 2^-9.
  const float size = magnitude < 8 ? static_cast<float>(magnitude) * 0x1p-9F
                                   : std::bit_cast<float>((magnitude << 20) + (120U << 23));
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
}

/// Nearest, ties to even; larger numbers, infinite ones too, become 448 with their sign; a NaN
/// becomes 0x7F.
constexpr E4m3 to_e4m3(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = (bits >> 24) & 0x80U;
  const auto magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return {0x7F};
  if (magnitude < 0x3C800000U) {
    // Below 2^-6: neighbours of 2^14 are 2^-9 apart, so this addition rounds to a multiple.
    const auto sum = std::bit_cast<float>(magnitude) + 0x1p14F;
    const auto count = std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0x1p14F);
    return {static_cast<std::uint8_t>(sign | count)};
  }
  const auto rounded = (magnitude + 0x7FFFFU + ((magnitude >> 20) & 1U)) >> 20;
  const auto code = rounded - (120U << 3);
  return {static_cast<std::uint8_t>(sign | (code > 0x7EU ? 0x7EU : code))};
}

/// The largest power of two by which numbers of at most this magnitude can be multiplied and stay
/// within 448; 1 for zero, NaN for what is not finite. A power of two rounds nothing, and stays as
/// it is when another layout's sums change the last bit of the magnitude.
constexpr float e4m3_scale(float magnitude) {
  const auto bits = std::bit_cast<std::uint32_t>(magnitude) & 0x7FFFFFFFU;
  if (bits >= 0x7F800000U) return std::bit_cast<float>(0x7FC00000U);
  if (bits == 0) return 1.0F;
  // 448 = 1.75 * 2^8.
  const auto exponent = static_cast<int>(bits >> 23) - 127;
  const int wanted = 8 - exponent - ((bits & 0x7FFFFFU) > 0x600000U ? 1 : 0);
  // Its inverse must be a normal number too.
  const int power = wanted > 126 ? 126 : wanted;
  return std::bit_cast<float>(static_cast<std::uint32_t>(power + 127) << 23);
}

/// 1 / e4m3_scale(...), exactly, whatever division a compiler is told to make.
constexpr float e4m3_unscale(float scale) {
  const auto bits = std::bit_cast<std::uint32_t>(scale);
  return bits >= 0x7F800000U ? scale : std::bit_cast<float>((254U << 23) - bits);
}

}  // namespace trireme::device
