// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

#include "key_value_cache.hpp"
#include "layers/norm.hpp"
#include "layers/weights.hpp"
#include "rotary.hpp"

namespace trireme::layers {

/// Activations that attention keeps from forward for backward.
struct AttentionActivations {
  device::Tensor input;     // [local_rows, hidden]: the normalised residual stream
  device::Tensor all_rows;  // [rows, hidden]: the input of all ranks, where it is gathered for both
                            // another forward and the weight gradient
  device::Tensor qkv;       // [rows, (heads + 2 kv_heads) * head_dim], local heads; q, k rotated
                            // unless head norms keep rotated copies of their own
  device::Tensor q;         // [rows, heads, head_dim] with head norms: normalised, rotated
  device::Tensor k;         // [rows, kv_heads, head_dim] with head norms: normalised, rotated
  NormStatistics q_norm;    // rstd f32 [rows * heads]
  NormStatistics k_norm;    // rstd f32 [rows * kv_heads]
  device::Tensor heads;     // [rows, heads * head_dim]: output of attention before the projection
  device::Tensor lse;       // f32 [micro_batch, heads, seq]
};

/// Gradients that backward of the inputs leaves for backward of the weights.
struct AttentionGradients {
  device::Tensor d_out;  // [rows, hidden]
  device::Tensor d_qkv;  // like qkv
};

/// Causal self-attention with grouped heads: q, k, v in one column-parallel GEMM, rotary embedding
/// or learned positions, a row-parallel projection back.
class AttentionBlock {
 public:
  AttentionBlock(const StageContext& context, const model::StageParameters& stage, int layer,
                 const RotaryTables& rotary);

  /// Activations that backward needs, but those that are discarded.
  AttentionActivations allocate(device::Arena& arena, ActivationSet discarded) const;
  /// Gives those that are missing a place in the workspace.
  void complete(AttentionActivations& kept) const;

  /// Reads kept.input and writes all others. out: [local_rows, hidden].
  void forward(const MicroBatch& batch, const AttentionActivations& kept,
               const device::Tensor& out) const;
  KeyValueCache make_cache(device::Arena& arena, const DecoderStage::Capacity& capacity) const;
  /// Forward of new tokens, which join the cache. Reads working.input; out: [rows, hidden].
  void decode(const CachedRows& rows, const AttentionActivations& working,
              const device::Tensor& out) const;
  /// kept.qkv, rotated, to kept.heads and kept.lse, once more.
  void attend(const MicroBatch& batch, const AttentionActivations& kept) const {
    context_.kernels.issue(attention(batch, kept));
  }
  /// d_out, d_input: [local_rows, hidden]. Gradients live in the caller's workspace scope.
  AttentionGradients backward_input(const MicroBatch& batch, const AttentionActivations& kept,
                                    const device::Tensor& d_out,
                                    const device::Tensor& d_input) const;
  void backward_weight(const AttentionActivations& kept, const AttentionGradients& gradients) const;

 private:
  /// Views of one [rows, width] tensor as heads, [micro_batch, seq, heads, head_dim].
  struct Heads {
    device::Tensor q;
    device::Tensor k;
    device::Tensor v;
  };
  Heads heads_of(const device::Tensor& qkv) const;
  device::Tensor by_sequence(const device::Tensor& rows_heads_dim) const;
  device::Attention attention(const MicroBatch& batch, const AttentionActivations& kept) const;
  void allocate_heads(device::Arena& arena, AttentionActivations& kept) const;
  /// Attention of the part's rows to themselves and to all that came before them in their sequence.
  void attend_to_cache(const device::Attention& rows, const SequencePart& part,
                       const KeyValueCache& cache) const;
  /// q, k, v of the input's rows, normalised where the model has head norms, not yet rotated.
  void project(const AttentionActivations& kept) const;
  /// out = heads projected back, summed over tensor-parallel ranks.
  void project_back(const device::Tensor& heads, const device::Tensor& out) const;
  void normalise_heads(const device::Tensor& qkv, const AttentionActivations& kept) const;
  void backward_through_head_norms(const AttentionActivations& kept, const device::Tensor& dq,
                                   const device::Tensor& dk, const Heads& d_heads) const;

  const StageContext& context_;
  RotaryTables rotary_;
  int layer_;
  std::int64_t heads_;
  std::int64_t kv_heads_;
  Matrix qkv_;
  Matrix q_norm_;
  Matrix k_norm_;
  Matrix output_;
};

}  // namespace trireme::layers
