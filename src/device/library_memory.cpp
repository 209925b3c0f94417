// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/library_memory.hpp"

#include "device/cuda/attention/cudnn/attention.hpp"

namespace trireme::device {

std::vector<LibraryMemory> planned_library_memory(const AttentionSize& size,
                                                  const AttentionChoice& choice) {
  std::vector<LibraryMemory> list{{"cuBLASLt", gemm_workspace_bytes}};
  if (choice.by == AttentionBy::own) return list;
  if (cudnn::reason_against(size, cudnn::supposed_support)) return list;
  cudnn::AttentionExtents extents;
  extents.causal = true;
  extents.q = extents.out = cudnn::dense(size.batch, size.heads, size.seq, size.head_dim);
  extents.k = extents.v = cudnn::dense(size.batch, size.kv_heads, size.seq, size.head_dim);
  const auto bytes = cudnn::FusedAttention::workspace_bytes(extents, {.bits = choice.bits});
  list.push_back({"cuDNN", bytes});
  return list;
}

}  // namespace trireme::device
