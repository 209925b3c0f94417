// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel_work.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trireme::bench {

/// Sizes of the measurements on a GPU.
struct GpuSizes {
  Shapes shapes;
  std::vector<AttentionShape> attention;
  /// Side of the GEMM whose rate is the ceiling in bf16; half as long in fp32.
  std::int64_t gemm_side = 0;
  /// Size of all sets of one kernel's tensors.
  std::int64_t footprint_bytes = 0;
  /// Size of the copy whose rate is a ceiling.
  std::int64_t copied_bytes = 0;
  std::size_t arena_bytes = 0;
  /// Calls of a kernel in one round; a round is long enough that the host's calls, which run ahead
  /// of the GPU, and the wait at its end do not count.
  int calls = 0;
};
GpuSizes gpu_sizes();

}  // namespace trireme::bench
