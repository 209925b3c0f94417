#pragma once

#include "trireme/device/kernels.hpp"

#include "device/cudnn/graph.hpp"

#include <cstddef>
#include <string>

namespace trireme::device::cudnn {

/// The tensors of attention and its backward, by the ids under which a graph finds them.
enum class Operand : std::int64_t {
  q = 1,
  k,
  v,
  out,
  lse,
  d_out,
  dq,
  dk,
  dv,
  /// f32 [batch, heads, queries], contiguous, in the workspace: row sums of out * d_out.
  row_sums,
  /// Floats of the host.
  scale,
  masked,
  one,
};

/// Where the operands lie: all that a plan depends on. Extents are [batch, heads, rows, head_dim].
struct AttentionExtents {
  bool causal = false;
  Extents q;
  Extents k;
  Extents v;
  Extents out;

  static AttentionExtents of(const Attention& attention);
  std::int64_t batch() const { return q.dims[0]; }
  std::int64_t heads() const { return q.dims[1]; }
  std::int64_t kv_heads() const { return k.dims[1]; }
  std::int64_t queries() const { return q.dims[2]; }
  std::int64_t keys() const { return k.dims[2]; }
  std::int64_t head_dim() const { return q.dims[3]; }
  /// Of scores and their gradient.
  Extents scores() const { return dense(batch(), heads(), queries(), keys()); }
  /// Of a number for each query: log-sum-exps, row sums.
  Extents rows() const { return dense(batch(), heads(), queries(), 1); }

  auto operator<=>(const AttentionExtents&) const = default;
};

struct AttentionBackwardExtents {
  AttentionExtents forward;
  Extents d_out;
  Extents dq;
  Extents dk;
  Extents dv;

  static AttentionBackwardExtents of(const AttentionBackward& backward);
  auto operator<=>(const AttentionBackwardExtents&) const = default;
};

bool takes_head_dim(std::int64_t head_dim);
/// Why a call is not for cuDNN as used here; empty if it is. It takes bf16, heads of 64 or 128, as
/// many queries as keys, no dropout (its masks are not ours), a kept lse, and rows whose addresses
/// and distances are multiples of 16 bytes.
std::string reason_against(const Attention& attention);
std::string reason_against(const AttentionBackward& backward);

/// out = softmax(mask(q * transpose(k) * scale)) * v, lse = max + log(sum(exp(. - max))): the
/// operations that cuDNN recognises as flash attention (Dao 2023), which keeps scores in registers.
Graph forward_graph(const Api& api, const AttentionExtents& extents);

/// dq, dk and dv from the same lse. The gradient of the scores passes through the workspace, and dq
/// is a product from there: no block adds to what another has written, so bits repeat. Without it,
/// blocks add to dq in the order in which they come.
Graph backward_graph(const Api& api, const AttentionBackwardExtents& extents);

/// What a masked score is: minus infinity, which versions before 9.10 do not take.
float masked_score(const Api& api);

/// What backward takes at most as a workspace, row sums included: the gradient of the scores in
/// bf16, whole tiles of them, and with grouped heads dk and dv of every query head.
std::size_t backward_workspace_bytes(const AttentionExtents& extents);

}  // namespace trireme::device::cudnn
