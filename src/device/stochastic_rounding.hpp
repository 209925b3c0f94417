// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/philox.hpp"
#include "trireme/device/kernels.hpp"

#include <array>
#include <bit>
#include <cstdint>

/// The one definition of rounding at random, for hosts and GPUs.
namespace trireme::device {

/// Neighbours that share a philox counter: each takes 16 bits, the lower half of a word first.
constexpr std::int64_t roundings_together = 8;
using RoundingWords = std::array<std::uint32_t, 4>;

/// The bits of the elements with numbers [8 * group, 8 * group + 8).
constexpr RoundingWords rounding_words(const StochasticRounding& rounding, std::int64_t group) {
  return base::philox(rounding.seed, rounding.stream, static_cast<std::uint64_t>(group));
}
/// Bits of one of them. Chosen, not indexed: on a GPU an index that is no constant would move the
/// words out of registers.
constexpr std::uint32_t rounding_bits(const RoundingWords& words, std::int64_t which) {
  const auto low = which < 2 ? words[0] : words[1];
  const auto high = which < 6 ? words[2] : words[3];
  const auto word = which < 4 ? low : high;
  return which % 2 == 0 ? word & 0xFFFFU : word >> 16;
}

/// Position of an element of a run in its tensor.
struct RoundingPlace {
  std::int64_t number = 0;
  /// Elements from it to the end of its row of the box, itself among them: their numbers follow.
  std::int64_t left = 0;
};
constexpr RoundingPlace place_of(const StochasticRounding& rounding, std::int64_t index) {
  const auto position = rounding.begin + index;
  const auto row = position / rounding.width;
  const auto column = position % rounding.width;
  return {rounding.first + row * rounding.stride + column, rounding.width - column};
}

/// The number above in magnitude with probability bits / 2^16 of what is cut off, else the one
/// below; `bits` < 2^16. What bf16 holds stays as it is, infinities too; beyond the largest number
/// comes infinity, as to the nearest; a NaN stays a NaN.
constexpr Bf16 to_bf16_stochastically(float value, std::uint32_t bits) {
  const auto whole = std::bit_cast<std::uint32_t>(value);
  const bool nan = (whole & 0x7FFFFFFFU) > 0x7F800000U;
  const auto upper = nan ? (whole >> 16) | 0x40U : (whole + bits) >> 16;
  return {static_cast<std::uint16_t>(upper)};
}

}  // namespace trireme::device
