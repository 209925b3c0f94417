// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include "trireme/base/format.hpp"
#include "trireme/telemetry/spans.hpp"

#include "dropout.hpp"
#include "tensor_parallel.hpp"

namespace trireme::layers {

using device::Tensor;
using telemetry::SpanKind;
using telemetry::SpanScope;

TransformerLayer::TransformerLayer(const StageContext& context, const model::StageParameters& stage,
                                   int layer, const RotaryTables& rotary, ActivationSet discarded)
    : context_(context),
      layer_(layer),
      discarded_(discarded),
      attention_norm_(context, stage, base::format("layers.{}.attention_norm", layer)),
      attention_(context, stage, layer, rotary),
      mlp_norm_(context, stage, base::format("layers.{}.mlp_norm", layer)),
      mlp_(context, stage, layer, discarded) {}

LayerActivations TransformerLayer::allocate(device::Arena& arena, ActivationSet discarded) const {
  if (discarded.has(Activation::layer)) return {};
  LayerActivations kept;
  kept.attention_norm = attention_norm_.allocate(arena);
  kept.attention = attention_.allocate(arena, discarded);
  kept.sum = context_.stream(arena);
  kept.mlp_norm = mlp_norm_.allocate(arena);
  kept.mlp = mlp_.allocate(arena, discarded);
  return kept;
}

LayerActivations TransformerLayer::completed(const LayerActivations& kept) const {
  if (!kept.sum) return allocate(context_.workspace, {});
  auto whole = kept;
  attention_.complete(whole.attention);
  mlp_.complete(whole.mlp);
  return whole;
}

void TransformerLayer::drop(const MicroBatch& batch, const char* site, const Tensor& from,
                            const Tensor& to) const {
  context_.kernels.issue(
      device::ApplyDropout{from, residual_dropout(context_, batch, site, layer_), to});
}

Tensor TransformerLayer::through_dropout(const MicroBatch& batch, const char* site,
                                         const Tensor& d_out) const {
  if (batch.dropout == 0.0F) return d_out;
  const auto masked = context_.workspace.allocate(context_.dtype, {d_out.dim(0), d_out.dim(1)});
  drop(batch, site, d_out, masked);
  return masked;
}

void TransformerLayer::forward_to_mlp(const MicroBatch& batch, const Tensor& x,
                                      const LayerActivations& kept, const Tensor& branch) const {
  attention_norm_.forward(x, kept.attention_norm, kept.attention.input);
  attention_.forward(batch, kept.attention, branch);
  if (batch.dropout > 0.0F) drop(batch, "dropout.attention.output", branch, branch);
  mlp_norm_.forward_sum(branch, x, kept.sum, kept.mlp_norm, kept.mlp.input);
}

void TransformerLayer::forward(const MicroBatch& batch, const Tensor& x,
                               const LayerActivations& kept, const Tensor& out) const {
  const device::ArenaScope scope(context_.workspace);
  const auto working = completed(kept);
  const auto branch = context_.workspace.allocate(context_.dtype, {x.dim(0), x.dim(1)});
  forward_to_mlp(batch, x, working, branch);
  mlp_.forward(working.mlp, branch);
  if (batch.dropout > 0.0F) drop(batch, "dropout.mlp.output", branch, branch);
  context_.kernels.issue(device::Add{working.sum, branch, out});
}

void TransformerLayer::decode(const CachedRows& rows, const Tensor& x) const {
  const device::ArenaScope scope(context_.workspace);
  const auto working = completed({});
  const auto branch = context_.workspace.allocate(context_.dtype, {x.dim(0), x.dim(1)});
  attention_norm_.forward(x, working.attention_norm, working.attention.input);
  attention_.decode(rows, working.attention, branch);
  mlp_norm_.forward_sum(branch, x, working.sum, working.mlp_norm, working.mlp.input);
  mlp_.forward(working.mlp, branch);
  context_.kernels.issue(device::Add{working.sum, branch, x});
}

void TransformerLayer::forward_again(const MicroBatch& batch, const Tensor& x,
                                     const LayerActivations& whole) const {
  const device::ArenaScope scope(context_.workspace);
  const auto branch = context_.stream(context_.workspace);
  forward_to_mlp(batch, x, whole, branch);
  // The layer's output is not needed again: no GEMM back, and no sum over ranks for it.
  mlp_.widen(whole.mlp);
}

LayerActivations TransformerLayer::restored(const MicroBatch& batch, const Tensor& x,
                                            const LayerActivations& kept) const {
  if (discarded_.empty()) return kept;
  const SpanScope span(SpanKind::layer_recompute, {.number = layer_});
  auto whole = completed(kept);
  // One gather serves the product that is computed again and the weight's gradient.
  if (!kept.sum) whole.attention.all_rows = room_for_rows(context_, whole.attention.input);
  if (!kept.mlp.wide) whole.mlp.all_rows = room_for_rows(context_, whole.mlp.input);
  if (!kept.sum) {
    forward_again(batch, x, whole);
    return whole;
  }
  if (!kept.attention.input) attention_norm_.again(x, whole.attention.input);
  if (!kept.attention.heads) attention_.attend(batch, whole.attention);
  if (!kept.mlp.input) mlp_norm_.again(whole.sum, whole.mlp.input);
  if (!kept.mlp.wide) {
    mlp_.widen(whole.mlp);
  } else if (!kept.mlp.activated) {
    mlp_.activate(whole.mlp);
  }
  return whole;
}

void TransformerLayer::backward(const MicroBatch& batch, const Tensor& x,
                                const LayerActivations& kept, const Tensor& d_out,
                                const Tensor& d_x) const {
  const device::ArenaScope scope(context_.workspace);
  const auto whole = restored(batch, x, kept);
  const auto gradients = backward_input(batch, x, whole, d_out, d_x);
  backward_weight(whole, gradients);
}

LayerGradients TransformerLayer::backward_input(const MicroBatch& batch, const Tensor& x,
                                                const LayerActivations& kept, const Tensor& d_out,
                                                const Tensor& d_x) const {
  const SpanScope span(SpanKind::layer_backward_input, {.number = layer_});
  auto& arena = context_.workspace;
  LayerGradients gradients;
  const auto d_norm = arena.allocate(context_.dtype, {x.dim(0), x.dim(1)});
  const auto d_sum = arena.allocate(context_.dtype, {x.dim(0), x.dim(1)});
  gradients.mlp =
      mlp_.backward_input(kept.mlp, through_dropout(batch, "dropout.mlp.output", d_out), d_norm);
  mlp_norm_.backward(d_norm, kept.sum, kept.mlp_norm, d_out, d_sum);
  gradients.attention = attention_.backward_input(
      batch, kept.attention, through_dropout(batch, "dropout.attention.output", d_sum), d_norm);
  attention_norm_.backward(d_norm, x, kept.attention_norm, d_sum, d_x);
  return gradients;
}

void TransformerLayer::backward_weight(const LayerActivations& kept,
                                       const LayerGradients& gradients) const {
  const SpanScope span(SpanKind::layer_backward_weight, {.number = layer_});
  mlp_.backward_weight(kept.mlp, gradients.mlp);
  attention_.backward_weight(kept.attention, gradients.attention);
}

}  // namespace trireme::layers
