// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/simd/dropout.hpp"

#include <bit>
#include <cstring>

namespace trireme::device::cpu {

/// Elements with consecutive numbers: see StochasticRounding.
struct RoundingRun {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t number = 0;
  const float* from = nullptr;
  Bf16* to = nullptr;
  std::int64_t count = 0;
};

struct RoundingTable {
  void (*round)(const RoundingRun& run);
};

/// Elements whose bits are made in one go: eight for each counter of two vectors.
template <typename Instructions>
constexpr std::int64_t rounding_block = 16 * Instructions::Words::count;

/// 16 bits for each element of the block that begins with counter `first`.
template <typename Instructions>
inline void rounding_block_bits(const RoundingRun& run, std::uint64_t first, std::uint16_t* out) {
  using Words = typename Instructions::Words;
  for (int half = 0; half < 2; ++half) {
    const Words numbers = Words::counters(first + static_cast<std::uint64_t>(half * Words::count));
    Words words[4] = {numbers, numbers.high(), Words::of(static_cast<std::uint32_t>(run.stream)),
                      Words::of(static_cast<std::uint32_t>(run.stream >> 32))};
    philox_rounds(words, run.seed);
    typename Instructions::Bits bits[2];
    pair_up(words, bits);
    // The lower half of a word first, as it lies in memory.
    std::memcpy(out, bits, sizeof bits);
    out += rounding_block<Instructions> / 2;
  }
}

/// to_bf16_stochastically, in this instruction set.
template <typename Instructions>
inline std::uint16_t rounded_up_by(float value, std::uint16_t bits) {
  const auto whole = std::bit_cast<std::uint32_t>(value);
  const auto quiet = (whole >> 16) | 0x40U;
  const auto sum = (whole + bits) >> 16;
  return static_cast<std::uint16_t>((whole & 0x7FFFFFFFU) > 0x7F800000U ? quiet : sum);
}

template <typename Instructions>
void rounding_run(const RoundingRun& run) {
  alignas(64) std::uint16_t bits[rounding_block<Instructions>];
  std::int64_t begin = 0;
  while (begin < run.count) {
    // A run may begin inside a counter: its first bits are then another run's.
    const std::uint64_t number = run.number + static_cast<std::uint64_t>(begin);
    const auto skipped = static_cast<std::int64_t>(number % 8);
    rounding_block_bits<Instructions>(run, number / 8, bits);
    const std::int64_t available = rounding_block<Instructions> - skipped;
    const std::int64_t taken = run.count - begin < available ? run.count - begin : available;
    const float* from = run.from + begin;
    Bf16* to = run.to + begin;
    for (std::int64_t i = 0; i < taken; ++i) {
      to[i].bits = rounded_up_by<Instructions>(from[i], bits[skipped + i]);
    }
    begin += taken;
  }
}

template <typename Instructions>
constexpr RoundingTable rounding_table() {
  return {rounding_run<Instructions>};
}

}  // namespace trireme::device::cpu
