// SPDX-License-Identifier: Apache-2.0
#include "gpu_copy.hpp"

#include "device/cuda/runtime/stream.hpp"

#include <algorithm>
#include <chrono>

namespace trireme::bench {

using device::cuda::check;

double gpu_copy_rate(std::int64_t bytes) {
  constexpr int rounds = 5;
  constexpr int copies = 10;
  const auto size = static_cast<std::size_t>(bytes);
  const auto from = device::cuda::allocate_device(size);
  const auto to = device::cuda::allocate_device(size);
  const auto stream = device::cuda::Stream::make();
  check(cudaMemsetAsync(from.get(), 0x5a, size, stream.view().raw()), "cudaMemsetAsync");
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    stream.view().synchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (int copy = 0; copy < copies; ++copy) {
      check(cudaMemcpyAsync(to.get(), from.get(), size, cudaMemcpyDeviceToDevice,
                            stream.view().raw()),
            "cudaMemcpyAsync");
    }
    stream.view().synchronize();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::max(best, 2.0 * copies * static_cast<double>(bytes) / took.count());
  }
  return best;
}

}  // namespace trireme::bench
