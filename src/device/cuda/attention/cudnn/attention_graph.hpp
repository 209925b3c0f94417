// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include "device/cuda/attention/cudnn/graph.hpp"

#include <cstdint>

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
  /// f32 like q, contiguous, in the workspace: dq before it is rounded.
  dq_sums,
  /// Floats in host memory.
  scale,
  masked,
  one,
  /// Integers in host memory.
  key_count,
  query_count,
};

/// Layout of the operands: all that a plan depends on. Extents are [batch, heads, rows, head_dim].
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
  /// Extents of scores and their gradient.
  Extents scores() const { return dense(batch(), heads(), queries(), keys()); }
  /// Extents of one number for each query: log-sum-exps, row sums.
  Extents rows() const { return dense(batch(), heads(), queries(), 1); }

  auto operator<=>(const AttentionExtents&) const = default;
};

struct AttentionBackwardExtents {
  AttentionBits bits = AttentionBits::fastest;
  AttentionExtents forward;
  Extents d_out;
  Extents dq;
  Extents dk;
  Extents dv;
  /// Type of dk and dv: f32 where they are terms of sums.
  DataType key_gradients = DataType::bf16;

  static AttentionBackwardExtents of(const AttentionBackward& backward, AttentionBits bits);
  auto operator<=>(const AttentionBackwardExtents&) const = default;
};

/// out = softmax(mask(q * transpose(k) * scale)) * v, lse = max + log(sum(exp(. - max))): the
/// operations that cuDNN recognises as flash attention (Dao 2023), which keeps scores in registers.
Graph forward_graph(const Api& api, const AttentionExtents& extents);

/// dq, dk and dv from the same lse; of fewer queries than keys, which must be the last ones, if it
/// is causal. `fastest`: blocks of keys add their terms to dq_sums as they come, from where dq is
/// rounded. `repeatable`: the gradient of the scores passes through the workspace, and a GEMM
/// computes dq from there: no block adds to what another has written.
Graph backward_graph(const Api& api, const AttentionBackwardExtents& extents);

/// True if dq_sums must be zero when a backward begins; from 9.6 on the library clears them itself
/// (NVIDIA's cudnn-frontend 1.9).
bool wants_zeros(const Api& api);

/// Value of a masked score: minus infinity, which versions before 9.10 do not take.
float masked_score(const Api& api);

}  // namespace trireme::device::cudnn
