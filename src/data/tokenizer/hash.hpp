// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace trireme::data {

/// Mixes one more number into a 64-bit hash: the finaliser of splitmix64 (Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", OOPSLA 2014) over the running state.
constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t value) {
  state = (state ^ value) + 0x9E3779B97F4A7C15ULL;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ULL;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBULL;
  return state ^ (state >> 31);
}

/// Hash of bytes that is the same on every machine and in every version: it decides which documents
/// are held out.
constexpr std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t state = 0) {
  std::uint64_t word = 0;
  int filled = 0;
  for (const char byte : bytes) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(byte)) << (8 * filled);
    if (++filled == 8) {
      state = mix(state, word);
      word = 0;
      filled = 0;
    }
  }
  return mix(mix(state, word), bytes.size());
}

}  // namespace trireme::data
