// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/float8.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace trireme::device {

/// e4m3 holds copies that GEMMs read (float8.hpp), nothing else.
enum class DType { f32, bf16, i32, e4m3 };

constexpr std::size_t size_of(DType dtype) {
  if (dtype == DType::e4m3) return 1;
  return dtype == DType::bf16 ? 2 : 4;
}
/// "f32", "bf16", "i32", "e4m3".
const char* name(DType dtype);

/// The upper half of a float: 8 exponent bits, 7 of mantissa.
struct Bf16 {
  std::uint16_t bits = 0;
};

constexpr float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
constexpr float to_float(float value) {
  return value;
}

/// Nearest, ties to even; a NaN stays a NaN.
constexpr Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16)};
}

}  // namespace trireme::device
