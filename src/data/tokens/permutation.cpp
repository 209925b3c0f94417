// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/permutation.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/philox.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::data {
namespace {

constexpr int round_count = 8;
/// Smallest side: networks over a handful of digits mix poorly (over three, some orders are rarer
/// than others); a longer walk over a larger square costs small sizes almost nothing.
constexpr std::uint64_t least_side = 8;

/// Uniform below `bound` from 64 random bits (Lemire's multiply and shift).
std::uint64_t scale(std::uint64_t bits, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

std::uint64_t join(std::uint32_t high, std::uint32_t low) {
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

/// The least number whose square is at least `size`.
std::uint64_t ceil_sqrt(std::uint64_t size) {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(size)));
  while (root * root < size) ++root;
  while (root > 1 && (root - 1) * (root - 1) >= size) --root;
  return root;
}

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream)
    : size_(size), side_(std::max(ceil_sqrt(size), least_side)) {
  TRIREME_EXPECT(size >= 1 && size <= (std::uint64_t{1} << 62), "between 1 and 2^62 elements");
  const auto bits = base::philox(seed, base::stream_of("data.order"), stream);
  key_ = join(bits[0], bits[1]);
}

std::uint64_t Permutation::once(std::uint64_t index) const {
  auto left = index / side_;
  auto right = index % side_;
  for (std::uint64_t round = 0; round < round_count; ++round) {
    const auto bits = base::philox(key_, round, right);
    auto next = left + scale(join(bits[0], bits[1]), side_);
    if (next >= side_) next -= side_;
    left = right;
    right = next;
  }
  return left * side_ + right;
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  TRIREME_EXPECT(index < size_, "an index below the size");
  do {
    index = once(index);
  } while (index >= size_);
  return index;
}

}  // namespace trireme::data
