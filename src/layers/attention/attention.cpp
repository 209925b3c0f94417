// SPDX-License-Identifier: Apache-2.0
#include "attention.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/philox.hpp"

#include "layers/linear.hpp"
#include "layers/rows/token_rows.hpp"
#include "layers/tensor_parallel.hpp"
#include "whole_sequences.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::layers {

using device::Tensor;

namespace {

const AttentionActivations& attention_of(const PartActivations& kept) {
  return static_cast<const AttentionActivations&>(kept);
}

}  // namespace

AttentionBlock::AttentionBlock(const StageContext& context, const model::StageParameters& stage,
                               int layer, const RotaryTables& rotary)
    : context_(context),
      rotary_(rotary),
      layer_(layer),
      heads_(context.config.num_attention_heads / context.tensor.size()),
      kv_heads_(std::max(1, context.config.num_key_value_heads / context.tensor.size())) {
  const auto prefix = base::format("layers.{}.attention.", layer);
  qkv_ = factor(context, stage, prefix + "qkv");
  q_norm_ = matrix(stage, prefix + "q_norm");
  k_norm_ = matrix(stage, prefix + "k_norm");
  output_ = factor(context, stage, prefix + "output");
}

void AttentionBlock::allocate_projections(device::Arena& arena, AttentionActivations& kept) const {
  const auto rows = context_.rows();
  const auto width = context_.config.head_dim;
  kept.qkv = place_of_qkv(arena);
  if (!context_.config.family().head_norms) return;
  kept.q = arena.allocate(context_.dtype, {rows, heads_, width});
  kept.k = arena.allocate(context_.dtype, {rows, kv_heads_, width});
  kept.q_norm.rstd = arena.allocate(device::DType::f32, {rows * heads_});
  kept.k_norm.rstd = arena.allocate(device::DType::f32, {rows * kv_heads_});
}

Tensor AttentionBlock::place_of_heads(device::Arena& arena) const {
  return arena.allocate(context_.dtype, {context_.rows(), heads_ * context_.config.head_dim});
}

Tensor AttentionBlock::place_of_lse(device::Arena& arena) const {
  return arena.allocate(device::DType::f32,
                        {context_.micro_batch, heads_, context_.sequence_length});
}

LayerPart::Kept AttentionBlock::allocate(device::Arena& arena, ActivationSet discarded) const {
  auto kept = std::make_unique<AttentionActivations>();
  if (discarded.has(Activation::layer)) return kept;
  allocate_projections(arena, *kept);
  if (!discarded.has(Activation::attention)) kept->lse = place_of_lse(arena);
  return kept;
}

PartOperands AttentionBlock::allocate_operands(device::Arena& arena,
                                               ActivationSet discarded) const {
  PartOperands operands;
  if (discarded.has(Activation::layer)) return operands;
  if (!discarded.has(Activation::norms)) operands.input = context_.stream(arena);
  if (!discarded.has(Activation::attention)) operands.middle = place_of_heads(arena);
  return operands;
}

LayerPart::Kept AttentionBlock::completed(const PartActivations& kept,
                                          const PartGradients& gradients) const {
  auto& arena = context_.workspace;
  auto whole = std::make_unique<AttentionActivations>(attention_of(kept));
  if (!whole->input) whole->input = gradients.input;
  if (!whole->input) whole->input = context_.stream(arena);
  if (!whole->qkv) allocate_projections(arena, *whole);
  if (whole->middle) return whole;
  whole->middle = gradients.middle ? gradients.middle : place_of_heads(arena);
  whole->lse = place_of_lse(arena);
  return whole;
}

Tensor AttentionBlock::place_of_qkv(device::Arena& arena) const {
  const auto width = (heads_ + 2 * kv_heads_) * context_.config.head_dim;
  return arena.allocate(context_.dtype, {context_.rows(), width});
}

Tensor AttentionBlock::place_of_gradient(device::Arena& arena,
                                         const PartActivations& /*kept*/) const {
  return place_of_qkv(arena);
}

PartGradients AttentionBlock::allocate_left(device::Arena& arena, ActivationSet discarded) const {
  PartGradients gradients;
  gradients.d_wide = place_of_qkv(arena);
  const bool all = discarded.has(Activation::layer);
  if (all || discarded.has(Activation::norms)) gradients.input = context_.stream(arena);
  if (all || discarded.has(Activation::attention)) gradients.middle = place_of_heads(arena);
  return gradients;
}

Tensor AttentionBlock::by_sequence(const Tensor& rows) const {
  return rows.split(0, context_.sequence_length);
}

AttentionBlock::Heads AttentionBlock::heads_of(const Tensor& qkv) const {
  const auto width = context_.config.head_dim;
  const auto part = [&](std::int64_t first, std::int64_t count) {
    return by_sequence(qkv.slice(1, first * width, count * width).split(1, width));
  };
  return {part(0, heads_), part(heads_, kv_heads_), part(heads_ + kv_heads_, kv_heads_)};
}

device::Attention AttentionBlock::attention(const MicroBatch& batch,
                                            const AttentionActivations& kept) const {
  const auto views = heads_of(kept.qkv);
  device::Attention attention;
  attention.q = kept.q ? by_sequence(kept.q) : views.q;
  attention.k = kept.k ? by_sequence(kept.k) : views.k;
  attention.v = views.v;
  attention.out = by_sequence(kept.middle.split(1, context_.config.head_dim));
  attention.lse = kept.lse;
  attention.scale = 1.0F / std::sqrt(static_cast<float>(context_.config.head_dim));
  if (batch.first_keys) attention.first_keys = by_sequence(batch.first_keys);
  if (batch.dropout > 0.0F) {
    attention.dropout = {
        .rate = batch.dropout,
        .seed = context_.seed,
        .stream = base::stream_of("dropout.attention") + static_cast<std::uint64_t>(layer_),
        .first_row = batch.first_sequence,
        .first_column = context_.tensor.rank() * heads_,
        .width = context_.config.num_attention_heads,
        .row_base = batch.places ? batch.places.slice(0, 0, 2) : Tensor{}};
  }
  return attention;
}

void AttentionBlock::normalise_heads(const Tensor& qkv, const AttentionActivations& kept) const {
  const auto eps = context_.config.norm_eps;
  const auto width = context_.config.head_dim;
  const auto q = qkv.slice(1, 0, heads_ * width).split(1, width);
  const auto k = qkv.slice(1, heads_ * width, kv_heads_ * width).split(1, width);
  context_.kernels.issue(device::NormForward{.kind = device::NormKind::rms,
                                             .x = q,
                                             .weight = q_norm_.weight,
                                             .y = kept.q,
                                             .rstd = kept.q_norm.rstd,
                                             .eps = eps});
  context_.kernels.issue(device::NormForward{.kind = device::NormKind::rms,
                                             .x = k,
                                             .weight = k_norm_.weight,
                                             .y = kept.k,
                                             .rstd = kept.k_norm.rstd,
                                             .eps = eps});
}

LayerPart::Kept AttentionBlock::part_of(const PartActivations& kept,
                                        const SequenceRows& rows) const {
  const auto& whole = attention_of(kept);
  auto part = std::make_unique<AttentionActivations>();
  part->input = rows.of_local(whole.input);
  part->middle = rows.of_rows(whole.middle);
  part->qkv = rows.of_rows(whole.qkv);
  part->q = rows.of_rows(whole.q);
  part->k = rows.of_rows(whole.k);
  part->q_norm.rstd = rows.of_rows(whole.q_norm.rstd, heads_);
  part->k_norm.rstd = rows.of_rows(whole.k_norm.rstd, kv_heads_);
  part->lse = rows.of_sequences(whole.lse);
  return part;
}

void AttentionBlock::project(const AttentionActivations& kept, const Tensor& input) const {
  linear_forward(context_, input, qkv_, qkv_.bias, kept.qkv);
  if (kept.q) normalise_heads(kept.qkv, kept);
}

void AttentionBlock::forward_back(const PartActivations& kept, const Tensor& terms) const {
  linear_forward(context_, kept.middle, output_, bias_of_one(context_, output_.bias), terms);
}

void AttentionBlock::forward_wide(const PartActivations& kept, const Tensor& input) const {
  project(attention_of(kept), input);
}

void AttentionBlock::forward_middle(const MicroBatch& batch, const PartActivations& kept) const {
  const auto attend = attention(batch, attention_of(kept));
  rotate(attend.q, Turn::there);
  rotate(attend.k, Turn::there);
  attend_forward(attend);
}

void AttentionBlock::rotate(const Tensor& heads, Turn turn) const {
  if (!rotary_.cosines) return;
  std::int64_t first = 0;
  for (const auto& run : token_runs_of(context_)) {
    context_.kernels.issue(device::Rotary{.x = heads.slice(1, first, run.size()),
                                          .cos_table = rotary_.cosines,
                                          .sin_table = rotary_.sines,
                                          .first_position = run.begin,
                                          .inverse = turn == Turn::back});
    first += run.size();
  }
}

void AttentionBlock::attend_forward(const device::Attention& own) const {
  if (context_.context_parallel == nullptr) return context_.kernels.issue(own);
  const device::ArenaScope scope(context_.workspace);
  const auto whole = gather_sequences(context_, {own.k, own.v});
  std::int64_t index = 0;
  for (const auto& run : runs_of_queries(context_)) {
    context_.kernels.issue(attention_of_run(own, whole, run, index++));
  }
}

void AttentionBlock::restore(const MicroBatch& batch, const PartActivations& kept,
                             PartActivations& whole) const {
  // From q, k and v, which are kept, and rotated.
  if (!kept.middle) attend_forward(attention(batch, attention_of(whole)));
}

void AttentionBlock::backward_through_head_norms(const AttentionActivations& kept, const Tensor& dq,
                                                 const Tensor& dk, const Heads& d_heads) const {
  const auto views = heads_of(kept.qkv);
  context_.kernels.issue(device::NormBackward{.kind = device::NormKind::rms,
                                              .dy = dq,
                                              .x = views.q,
                                              .weight = q_norm_.weight,
                                              .rstd = kept.q_norm.rstd,
                                              .dx = d_heads.q,
                                              .d_weight = q_norm_.d_weight,
                                              .eps = context_.config.norm_eps});
  context_.kernels.issue(device::NormBackward{.kind = device::NormKind::rms,
                                              .dy = dk,
                                              .x = views.k,
                                              .weight = k_norm_.weight,
                                              .rstd = kept.k_norm.rstd,
                                              .dx = d_heads.k,
                                              .d_weight = k_norm_.d_weight,
                                              .eps = context_.config.norm_eps});
}

void AttentionBlock::backward_input(const MicroBatch& batch, const PartActivations& part,
                                    const PartGradients& gradients, const Tensor& terms) const {
  auto& kernels = context_.kernels;
  auto& arena = context_.workspace;
  const auto& kept = attention_of(part);
  const device::ArenaScope scope(arena);
  const auto d_heads_flat =
      arena.allocate(context_.dtype, {context_.rows(), heads_ * context_.config.head_dim});
  kernels.issue(device::LinearBackwardInput{gradients.d_out, output_.weight, d_heads_flat});
  const auto d_heads = heads_of(gradients.d_wide);
  Tensor dq = d_heads.q;
  Tensor dk = d_heads.k;
  if (kept.q) {
    dq = by_sequence(arena.allocate(context_.dtype, {kept.q.dim(0), kept.q.dim(1), kept.q.dim(2)}));
    dk = by_sequence(arena.allocate(context_.dtype, {kept.k.dim(0), kept.k.dim(1), kept.k.dim(2)}));
  }
  const device::AttentionBackward backward{
      .forward = attention(batch, kept),
      .d_out = by_sequence(d_heads_flat.split(1, context_.config.head_dim)),
      .dq = dq,
      .dk = dk,
      .dv = d_heads.v};
  if (context_.context_parallel == nullptr) {
    kernels.issue(backward);
  } else {
    attend_backward(context_, backward);
  }
  rotate(dq, Turn::back);
  rotate(dk, Turn::back);
  if (kept.q) backward_through_head_norms(kept, dq, dk, d_heads);
  kernels.issue(device::LinearBackwardInput{gradients.d_wide, qkv_.weight, terms});
}

void AttentionBlock::backward_weight_back(const Tensor& middle,
                                          const PartGradients& gradients) const {
  context_.kernels.issue(
      device::LinearBackwardWeight{gradients.d_out, middle, output_.d_weight, output_.d_bias});
}

void AttentionBlock::backward_weight_wide(const Tensor& rows, const PartGradients& gradients,
                                          WideColumns columns) const {
  add_weight_gradient(context_, gradients.d_wide, rows, qkv_, columns);
}

}  // namespace trireme::layers
