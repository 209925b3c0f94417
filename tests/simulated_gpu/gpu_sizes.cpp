// SPDX-License-Identifier: Apache-2.0
// bench_kernels where a GPU is made of the host: every kernel once, in sizes of seconds.
#include "bench/kernels/gpu_sizes.hpp"

namespace trireme::bench {

GpuSizes gpu_sizes() {
  GpuSizes sizes;
  sizes.shapes = {8, 64, 128, 2, 64, 4, 512};
  sizes.attention = {{"2 heads of 64, seq 8", 1, 8, 2, 2, 64}};
  sizes.gemm_side = 32;
  sizes.footprint_bytes = 16 << 10;
  sizes.copied_bytes = 64 << 10;
  sizes.arena_bytes = std::size_t{8} << 20;
  sizes.calls = 1;
  return sizes;
}

}  // namespace trireme::bench
