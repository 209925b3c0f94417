// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/rows.hpp"
#include "simt.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace trireme::device::cuda {

/// a / b and a % b of numbers below 2^32: a few instructions, where 64 bits take a call.
struct Quotient {
  std::int64_t whole;
  std::int64_t rest;
};
__device__ inline Quotient divide(std::int64_t a, std::int64_t b) {
  const auto number = static_cast<std::uint32_t>(a);
  const auto by = static_cast<std::uint32_t>(b);
  return {number / by, number % by};
}
constexpr std::int64_t largest_dividend = 0xFFFFFFFF;

/// device::Rows for kernels: at most 2^32 rows.
class RowMap {
 public:
  RowMap() = default;
  explicit RowMap(const Rows& rows)
      : count_(rows.count()),
        width_(rows.width()),
        levels_(std::max(1, static_cast<int>(rows.levels()))) {
    TRIREME_EXPECT(count_ <= largest_dividend, "a kernel's tensors have at most 2^32 rows");
    for (std::size_t level = 0; level < rows.levels(); ++level) {
      lengths_[level] = rows.level_length(level);
      strides_[level] = rows.level_stride(level);
    }
  }

  __device__ std::int64_t count() const { return count_; }
  __device__ std::int64_t width() const { return width_; }
  /// Elements from the first of the tensor to the first of a row.
  __device__ std::int64_t offset(std::int64_t row) const {
    // Indices that are constants: others would move the lengths from registers to memory.
    if (levels_ == 1) return row * strides_[0];
    const auto inner = divide(row, lengths_[0]);
    if (levels_ == 2) return inner.rest * strides_[0] + inner.whole * strides_[1];
    const auto middle = divide(inner.whole, lengths_[1]);
    return inner.rest * strides_[0] + middle.rest * strides_[1] + middle.whole * strides_[2];
  }

 private:
  static constexpr int most_levels = Tensor::max_rank - 1;
  std::int64_t count_ = 0;
  std::int64_t width_ = 0;
  /// Number of strides, at least 1: a single row lies at 0 times its stride.
  int levels_ = 1;
  std::int64_t lengths_[most_levels]{};
  std::int64_t strides_[most_levels]{};
};

/// The rows of a tensor, as a kernel sees them; an absent operand has no data.
template <typename T>
struct Matrix {
  simt::Global<T> data;
  RowMap rows;

  __device__ simt::Global<T> row(std::int64_t index) const { return data.from(rows.offset(index)); }
};

/// Elements of one 16-byte access.
template <typename T>
constexpr int pack_size = 16 / static_cast<int>(sizeof(T));

template <int N>
using Floats = simt::Pack<float, N>;

/// Number of neighbours of type T in one access, of N in all.
template <int N, typename T>
constexpr int access_size = N < pack_size<T> ? N : pack_size<T>;

/// Loads N neighbours in accesses of at most 16 bytes.
template <int N, typename T>
__device__ Floats<N> load_floats(const simt::Global<T>& row, std::int64_t column) {
  constexpr int part = access_size<N, std::remove_const_t<T>>;
  Floats<N> values;
  for (int first = 0; first < N; first += part) {
    const auto pack = row.template load_pack<part>(column + first);
    for (int i = 0; i < part; ++i) values[first + i] = simt::widen(pack, i);
  }
  return values;
}

template <int N, typename T>
__device__ void store_floats(const simt::Global<T>& row, std::int64_t column,
                             const Floats<N>& values) {
  constexpr int part = access_size<N, T>;
  for (int first = 0; first < N; first += part) {
    simt::Pack<T, part> pack;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
    for (int i = 0; i < part; ++i) pack[i] = simt::narrow<T>(values[first + i]);
    row.template store_pack<part>(column + first, pack);
  }
}

}  // namespace trireme::device::cuda
