// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

/// Parts that backends share of operations on the rows of matrices.
namespace trireme::device {

/// The words of a double, the low one first.
inline void store_words(double number, std::int32_t* words) {
  const auto bits = std::bit_cast<std::uint64_t>(number);
  words[0] = static_cast<std::int32_t>(bits);
  words[1] = static_cast<std::int32_t>(bits >> 32U);
}

}  // namespace trireme::device
