// SPDX-License-Identifier: Apache-2.0
#include "gpu_sizes.hpp"

namespace trireme::bench {

GpuSizes gpu_sizes() {
  GpuSizes sizes;
  // Sizes that fill a GPU: 32 Ki tokens of a model of 1.3B, and parameters by the tens of millions.
  sizes.shapes.rows = 32768;
  sizes.shapes.hidden = 2048;
  sizes.shapes.intermediate = 5632;
  sizes.shapes.heads = 16;
  sizes.shapes.logit_rows = 4096;
  sizes.shapes.parameters = std::int64_t{64} << 20;
  sizes.attention = {{"12 heads of 64, seq 1024", 16, 1024, 12, 12, 64},
                     {"16 / 4 heads of 128, seq 4096", 4, 4096, 16, 4, 128}};
  sizes.gemm_side = 8192;
  // Many times what a GPU's caches hold, and at least five of the largest tensors: a kernel that
  // met one of them twice in a call would read it from a cache.
  sizes.footprint_bytes = std::int64_t{4} << 30;
  sizes.copied_bytes = std::int64_t{1} << 30;
  sizes.arena_bytes = std::size_t{24} << 30;
  sizes.calls = 20;
  return sizes;
}

}  // namespace trireme::bench
