#include "trireme/device/library_memory.hpp"

#include "device/cudnn/attention.hpp"

namespace trireme::device {

std::vector<LibraryMemory> planned_library_memory(DType dtype, const AttentionSize& size) {
  std::vector<LibraryMemory> list{{"cuBLASLt", product_workspace_bytes}};
  if (dtype != DType::bf16 || size.dropout || !cudnn::takes_head_dim(size.head_dim)) return list;
  cudnn::AttentionExtents extents;
  extents.q = extents.out = cudnn::dense(size.batch, size.heads, size.seq, size.head_dim);
  extents.k = extents.v = cudnn::dense(size.batch, size.kv_heads, size.seq, size.head_dim);
  list.push_back({"cuDNN", cudnn::FusedAttention::workspace_bytes(extents)});
  return list;
}

}  // namespace trireme::device
