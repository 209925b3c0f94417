// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/runtime/stream.hpp"
#include "support/simulated_gpu/cuda/runtime.hpp"

#include <cstring>

/// The begin of tests of the runtime.
namespace trireme::testing {

using device::cuda::allocate_device;
using device::cuda::allocate_pinned;
using device::cuda::check;

constexpr std::uint64_t seeds = 24;

/// body(seed) on a new GPU each time.
template <typename Body>
void for_each_seed(const Body& body) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    simulated_gpu::Runtime::restart({seed, 1});
    body(seed);
  }
}

/// Bytes taken of the GPU's memory, as it says itself.
inline std::size_t taken_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return total - free;
}

/// A stream that does not wait for the legacy one.
struct Lane {
  device::cuda::Stream owner = device::cuda::Stream::make();
  cudaStream_t raw = owner.view().raw();

  void set(const device::cuda::DeviceMemory& memory, int value, std::size_t bytes) const {
    check(cudaMemsetAsync(memory.get(), value, bytes, raw), "cudaMemsetAsync");
  }
  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) const {
    check(cudaMemcpyAsync(to, from, bytes, kind, raw), "cudaMemcpyAsync");
  }
};

}  // namespace trireme::testing
