#pragma once

#include "simt.hpp"

/// Sums whose order depends on the number of threads alone.
namespace trireme::device::cuda {

template <typename T, int count>
__device__ void warp_sums(T (&values)[count]) {
  for (int mask = simt::warp_size / 2; mask > 0; mask /= 2) {
    for (int i = 0; i < count; ++i) values[i] += simt::shuffle_xor(values[i], mask);
  }
}

/// Every thread of the block gets all sums. Up to 32 warps.
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

/// Who shares a row: a warp, or a whole block.
template <bool whole_block>
struct Team {
  __device__ static std::int64_t index() {
    return whole_block ? simt::block()
                       : simt::block() * (simt::threads() / simt::warp_size) + simt::warp();
  }
  __device__ static std::int64_t count() {
    return whole_block ? simt::blocks() : simt::blocks() * (simt::threads() / simt::warp_size);
  }
  __device__ static int rank() { return whole_block ? simt::thread() : simt::lane(); }
  __device__ static int size() { return whole_block ? simt::threads() : simt::warp_size; }
  template <typename T, int values_count>
  __device__ static void sums(T (&values)[values_count]) {
    if constexpr (whole_block) {
      block_sums(values);
    } else {
      warp_sums(values);
    }
  }
};

}  // namespace trireme::device::cuda
