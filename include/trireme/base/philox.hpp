// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/text.hpp"

#include <array>
#include <cstdint>

namespace trireme::base {

/// Counter-based random numbers: Philox4x32-10 of Salmon et al., "Parallel random numbers: as
/// easy as 1, 2, 3" (SC'11). A value is a pure function of (seed, stream, index), so it does
/// not depend on which rank asks or in what order.
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t stream,
                                              std::uint64_t index) {
  std::array<std::uint32_t, 4> counter{
      static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
      static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)};
  std::uint32_t key0 = static_cast<std::uint32_t>(seed);
  std::uint32_t key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
               static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

/// Uniform in [0, 1) with 24 bits.
constexpr float uniform_from_bits(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1.0p-24F;
}

/// Standard normal number `index` of (seed, stream), by Box-Muller.
float philox_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

/// A stream number from a name (FNV-1a, 64 bit): tensors and purposes have streams of their own.
constexpr std::uint64_t stream_of(std::string_view name) {
  return Fnv1a().add(name).value();
}

}  // namespace trireme::base
