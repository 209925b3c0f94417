// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trireme::engine {

/// Sum of doubles without rounding (Kulisch's long accumulator): its bits depend neither on the
/// order of the terms nor on who added which. Digits of 16 bits are summed in 32 as integers.
class ExactSum {
 public:
  /// Ranks whose digits have room in 32 bits.
  static constexpr std::int64_t most_ranks = 65'536;
  /// Words of its digits and of the counts of what is no number.
  static constexpr std::size_t words = 140;

  /// Adds a number, at most 2^31 of them.
  void add(double value);
  /// Rounded once the digits are added: to the last bit or the one before. Infinite or no number if
  /// a term was.
  double value() const;

  /// As words whose sums over ranks, each in 32 bits, are those of the sum.
  void write(std::span<std::int32_t, words> to);
  void read(std::span<const std::int32_t, words> from);

 private:
  static constexpr std::size_t digits = words - 3;
  using Digits = std::array<std::int64_t, digits>;

  /// Each digit but the last becomes one of 0 to 65535.
  static void normalise(Digits& of);

  Digits digits_{};
  std::array<std::int64_t, 3> others_{};  ///< terms that are +infinity, -infinity, no number
};

}  // namespace trireme::engine
