// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

#include "layers/layer_part.hpp"
#include "layers/norm.hpp"
#include "layers/weights.hpp"
#include "rotary.hpp"

namespace trireme::layers {

struct AttentionActivations : PartActivations {
  device::Tensor qkv;     // [rows, (heads + 2 kv_heads) * head_dim], local heads; q, k rotated
                          // unless head norms keep rotated copies of their own
  device::Tensor q;       // [rows, heads, head_dim] with head norms: normalised, rotated
  device::Tensor k;       // [rows, kv_heads, head_dim] with head norms: normalised, rotated
  NormStatistics q_norm;  // rstd f32 [rows * heads]
  NormStatistics k_norm;  // rstd f32 [rows * kv_heads]
  device::Tensor lse;     // f32 [micro_batch, heads, seq]; of context-parallel ranks run by run
};

/// Causal self-attention with grouped heads: q, k, v in one column-parallel GEMM, rotary embedding
/// or learned positions, a row-parallel projection back. Context-parallel ranks gather keys and
/// values.
class AttentionBlock final : public Mixer {
 public:
  AttentionBlock(const StageContext& context, const model::StageParameters& stage, int layer,
                 const RotaryTables& rotary);

  Kept allocate(device::Arena& arena, ActivationSet discarded) const override;
  Kept completed(const PartActivations& kept, const PartGradients& gradients) const override;
  PartOperands allocate_operands(device::Arena& arena, ActivationSet discarded) const override;
  device::Tensor place_of_gradient(device::Arena& arena,
                                   const PartActivations& kept) const override;
  PartGradients allocate_left(device::Arena& arena, ActivationSet discarded) const override;
  Kept part_of(const PartActivations& kept, const SequenceRows& rows) const override;
  void forward_wide(const PartActivations& kept, const device::Tensor& input) const override;
  void forward_middle(const MicroBatch& batch, const PartActivations& kept) const override;
  void forward_back(const PartActivations& kept, const device::Tensor& terms) const override;
  void restore(const MicroBatch& batch, const PartActivations& kept,
               PartActivations& whole) const override;
  void backward_input(const MicroBatch& batch, const PartActivations& kept,
                      const PartGradients& gradients, const device::Tensor& terms) const override;
  void backward_weight_back(const device::Tensor& middle,
                            const PartGradients& gradients) const override;
  void backward_weight_wide(const device::Tensor& rows, const PartGradients& gradients,
                            WideColumns columns) const override;
  KeyValueCache make_cache(device::Arena& arena,
                           const DecoderStage::Capacity& capacity) const override;
  void decode(const CachedRows& rows, const PartActivations& working,
              const device::Tensor& out) const override;

 private:
  /// Views of one [rows, width] tensor as heads, [micro_batch, seq, heads, head_dim].
  struct Heads {
    device::Tensor q;
    device::Tensor k;
    device::Tensor v;
  };
  Heads heads_of(const device::Tensor& qkv) const;
  /// [rows, ...] as [micro_batch, seq, ...].
  device::Tensor by_sequence(const device::Tensor& rows) const;
  device::Attention attention(const MicroBatch& batch, const AttentionActivations& kept) const;
  void allocate_projections(device::Arena& arena, AttentionActivations& kept) const;
  device::Tensor place_of_qkv(device::Arena& arena) const;
  device::Tensor place_of_heads(device::Arena& arena) const;
  device::Tensor place_of_lse(device::Arena& arena) const;
  /// Attention of the part's rows to themselves and to all that came before them in their sequence.
  void attend_to_cache(const device::Attention& rows, const SequencePart& part,
                       const KeyValueCache& cache) const;
  enum class Turn { there, back };
  /// Rotary embedding of heads, [micro_batch, seq, heads, head_dim], if the model has one.
  void rotate(const device::Tensor& heads, Turn turn) const;
  /// Attention of the rank's queries to all of their sequences' keys.
  void attend_forward(const device::Attention& own) const;
  /// q, k, v of the input of all ranks, normalised where the model has head norms, not yet rotated.
  void project(const AttentionActivations& kept, const device::Tensor& input) const;
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
