// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace trireme::data {

/// A pseudo-random order of the numbers 0 ... size-1 that is never stored: element i is computed
/// (docs/decisions/0015).
///
/// A Feistel network over pairs (left, right) of digits below `side` = ceil(sqrt(size)), at least
/// 8, in eight rounds of (l, r) -> (r, l + F(round, r) mod side) with Philox as F: a bijection of
/// [0, side^2). Values at or above `size` walk on along their cycle until they fall below it
/// (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002); for all but small
/// sizes side^2 - size < 2 side + 1, so nearly all need one pass.
class Permutation {
 public:
  /// Permutation of 0 ... size-1, selected by `seed` and `stream`. 1 <= size <= 2^62.
  Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream);

  /// 0 <= index < size.
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  std::uint64_t once(std::uint64_t index) const;

  std::uint64_t size_;
  std::uint64_t side_;
  std::uint64_t key_;
};

}  // namespace trireme::data
