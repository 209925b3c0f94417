// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simt.hpp"

/// Sums whose order depends on the number of threads alone.
namespace trireme::device::cuda {

/// Sums over `lanes` neighbours, a power of two; all lanes of the warp take part.
template <int lanes, typename T, int count>
__device__ void neighbour_sums(T (&values)[count]) {
  for (int mask = lanes / 2; mask > 0; mask /= 2) {
    for (int i = 0; i < count; ++i) values[i] += simt::shuffle_xor(values[i], mask);
  }
}
template <typename T, int count>
__device__ void warp_sums(T (&values)[count]) {
  neighbour_sums<simt::warp_size>(values);
}

/// Sums over the block, for every thread. Up to 32 warps.
template <typename T, int count>
__device__ void block_sums(T (&values)[count]) {
  __shared__ simt::Shared<T, count * simt::warp_size> partial;
  warp_sums(values);
  simt::sync();  // the former sums have been read
  if (simt::lane() == 0) {
    for (int i = 0; i < count; ++i) partial.store(i * simt::warp_size + simt::warp(), values[i]);
  }
  simt::sync();
  const int warps = simt::threads() / simt::warp_size;
  for (int i = 0; i < count; ++i) {
    values[i] = simt::lane() < warps ? partial.load(i * simt::warp_size + simt::lane()) : T{};
  }
  warp_sums(values);
}

/// Largest of the block's numbers, for every thread. Up to 32 warps.
__device__ inline std::uint32_t block_largest(std::uint32_t value) {
  __shared__ simt::Shared<std::uint32_t, simt::warp_size> partial;
  const auto of_warp = [](std::uint32_t own) {
    for (int mask = simt::warp_size / 2; mask > 0; mask /= 2) {
      const auto other = simt::shuffle_xor(own, mask);
      own = other > own ? other : own;
    }
    return own;
  };
  value = of_warp(value);
  simt::sync();  // the former numbers have been read
  if (simt::lane() == 0) partial.store(simt::warp(), value);
  simt::sync();
  const int warps = simt::threads() / simt::warp_size;
  return of_warp(simt::lane() < warps ? partial.load(simt::lane()) : 0U);
}

/// Threads that share a row: `lanes` neighbours of a warp (a power of two), or a whole block (0).
template <int lanes>
struct Team {
  static constexpr bool whole_block = lanes == 0;
  /// Teams of a block, and which of them this is.
  __device__ static int in_block() { return whole_block ? 1 : simt::threads() / width(); }
  __device__ static int number() { return whole_block ? 0 : simt::thread() / width(); }
  __device__ static std::int64_t index() { return simt::block() * in_block() + number(); }
  __device__ static std::int64_t count() { return simt::blocks() * in_block(); }
  __device__ static int rank() { return whole_block ? simt::thread() : simt::thread() % width(); }
  __device__ static int size() { return whole_block ? simt::threads() : width(); }
  /// Sums over the team; all threads of the warp, or of the block, take part.
  template <typename T, int values_count>
  __device__ static void sums(T (&values)[values_count]) {
    if constexpr (whole_block) {
      block_sums(values);
    } else {
      neighbour_sums<lanes>(values);
    }
  }

 private:
  static constexpr int width() { return whole_block ? 1 : lanes; }
};

}  // namespace trireme::device::cuda
