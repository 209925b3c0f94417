// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"

#include "device/cpu/gemm/block_gemm.hpp"
#include "device/cpu/runtime/context.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace trireme::device::cpu {

/// Attention by tiles (Dao et al. 2022, "FlashAttention"): a block of queries meets one block of
/// keys after the other, so that scores live in a core's own cache and nowhere else. GEMMs of
/// tiles go through oneDNN, softmax through the vectors of the context's instruction set.
/// Threads take whole parts of the work in turn; a sum is always made by one thread, in order.
class FlashAttention {
 public:
  explicit FlashAttention(const Context& context);

  void forward(const Attention& attention);
  void backward(const AttentionBackward& attention);

  /// Memory for tiles, outside of any arena: it grows with the longest sequence seen and the
  /// threads, not with batch or heads.
  std::size_t workspace_bytes() const;

  /// State of one thread.
  struct Worker {
    BlockGemm gemm;
    Arena arena;
  };

 private:
  std::shared_ptr<Team> team_;
  Isa isa_;
  std::vector<Worker> workers_;
};

}  // namespace trireme::device::cpu
