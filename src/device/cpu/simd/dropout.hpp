// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/simd/lanes.hpp"

namespace trireme::device::cpu {

/// A dropout mask as plain numbers: see DropoutMask.
struct MaskNumbers {
  float rate = 0;
  float kept_factor = 1;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
};

template <typename T>
struct DropoutFunctions {
  /// y = x * factors of the elements numbered from `index` on; y may be x.
  void (*apply)(const MaskNumbers& mask, std::uint64_t index, const T* x, T* y, std::int64_t count);
};

struct DropoutTable : PerType<DropoutFunctions> {
  /// The factors alone.
  void (*factors)(const MaskNumbers& mask, std::uint64_t index, float* out, std::int64_t count);
};

/// Elements whose factors are made in one go: four for each counter of two vectors.
template <typename Instructions>
constexpr std::int64_t mask_block = 8 * Instructions::Words::count;

/// Philox4x32-10 (see base::philox) of one counter in each lane.
template <typename Words>
inline void philox_rounds(Words (&counter)[4], std::uint64_t seed) {
  auto key0 = static_cast<std::uint32_t>(seed);
  auto key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    // Products take the lower halves of lanes, so what lies above them may stay.
    const Words product0 = counter[0] * Words::of(0xD2511F53U);
    const Words product1 = counter[2] * Words::of(0xCD9E8D57U);
    counter[0] = product1.high() ^ counter[1] ^ Words::of(key0);
    counter[2] = product0.high() ^ counter[3] ^ Words::of(key1);
    counter[1] = product1;
    counter[3] = product0;
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
}

/// Factors of the block of elements that begins with counter `first`.
template <typename Instructions>
inline void mask_block_factors(const MaskNumbers& mask, std::uint64_t first, float* out) {
  using Vec = typename Instructions::Vec;
  using Words = typename Instructions::Words;
  for (int half = 0; half < 2; ++half) {
    const Words numbers = Words::counters(first + static_cast<std::uint64_t>(half * Words::count));
    Words words[4] = {numbers, numbers.high(), Words::of(static_cast<std::uint32_t>(mask.stream)),
                      Words::of(static_cast<std::uint32_t>(mask.stream >> 32))};
    philox_rounds(words, mask.seed);
    typename Instructions::Bits bits[2];
    pair_up(words, bits);
    for (const auto& vector : bits) {
      where_at_least(Vec::uniform(vector), Vec::of(mask.rate), Vec::of(mask.kept_factor))
          .store(out);
      out += Vec::width;
    }
  }
}

/// body(factors, begin, count) for consecutive pieces of a run.
template <typename Instructions, typename Body>
inline void for_mask_pieces(const MaskNumbers& mask, std::uint64_t index, std::int64_t count,
                            const Body& body) {
  alignas(64) float factors[mask_block<Instructions>];
  std::int64_t begin = 0;
  while (begin < count) {
    // A run may begin inside a counter: its first numbers are then another run's.
    const std::uint64_t number = index + static_cast<std::uint64_t>(begin);
    const auto skipped = static_cast<std::int64_t>(number % 4);
    mask_block_factors<Instructions>(mask, number / 4, factors);
    const std::int64_t available = mask_block<Instructions> - skipped;
    const std::int64_t taken = count - begin < available ? count - begin : available;
    body(factors + skipped, begin, taken);
    begin += taken;
  }
}

template <typename Instructions, typename T>
void dropout_run(const MaskNumbers& mask, std::uint64_t index, const T* x, T* y,
                 std::int64_t count) {
  using Vec = typename Instructions::Vec;
  for_mask_pieces<Instructions>(
      mask, index, count, [&](const float* factors, std::int64_t begin, std::int64_t taken) {
        for_lanes<Vec>(taken, [&](std::int64_t i, auto extent) {
          store(y + begin + i, load<Vec>(x + begin + i, extent) * load<Vec>(factors + i, extent),
                extent);
        });
      });
}

template <typename Instructions>
void mask_factors(const MaskNumbers& mask, std::uint64_t index, float* out, std::int64_t count) {
  using Vec = typename Instructions::Vec;
  for_mask_pieces<Instructions>(mask, index, count,
                                [&](const float* factors, std::int64_t begin, std::int64_t taken) {
                                  for_lanes<Vec>(taken, [&](std::int64_t i, auto extent) {
                                    store(out + begin + i, load<Vec>(factors + i, extent), extent);
                                  });
                                });
}

template <typename Instructions>
constexpr DropoutTable dropout_table() {
  return {{{dropout_run<Instructions, float>}, {dropout_run<Instructions, Bf16>}},
          mask_factors<Instructions>};
}

}  // namespace trireme::device::cpu
