// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include "trireme/base/format.hpp"
#include "trireme/telemetry/spans.hpp"

#include "dropout.hpp"

namespace trireme::layers {

using device::Tensor;
using telemetry::SpanKind;
using telemetry::SpanScope;

TransformerLayer::TransformerLayer(const StageContext& context, const model::StageParameters& stage,
                                   int layer, const RotaryTables& rotary)
    : context_(context),
      layer_(layer),
      attention_norm_(context, stage, base::format("layers.{}.attention_norm", layer)),
      attention_(context, stage, layer, rotary),
      mlp_norm_(context, stage, base::format("layers.{}.mlp_norm", layer)),
      mlp_(context, stage, layer) {}

LayerActivations TransformerLayer::allocate(device::Arena& arena, Recompute recompute) const {
  if (recompute == Recompute::full) return {};
  LayerActivations kept;
  kept.attention_norm = attention_norm_.allocate(arena);
  kept.attention = attention_.allocate(arena, recompute);
  kept.sum = arena.allocate(context_.dtype, {context_.local_rows(), context_.config.hidden_size});
  kept.mlp_norm = mlp_norm_.allocate(arena);
  kept.mlp = mlp_.allocate(arena);
  return kept;
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
  const auto working = kept.sum ? kept : allocate(context_.workspace, Recompute::none);
  const auto branch = context_.workspace.allocate(context_.dtype, {x.dim(0), x.dim(1)});
  forward_to_mlp(batch, x, working, branch);
  mlp_.forward(working.mlp, branch);
  if (batch.dropout > 0.0F) drop(batch, "dropout.mlp.output", branch, branch);
  context_.kernels.issue(device::Add{working.sum, branch, out});
}

void TransformerLayer::decode(const CachedRows& rows, const Tensor& x) const {
  const device::ArenaScope scope(context_.workspace);
  const auto working = allocate(context_.workspace, Recompute::none);
  const auto branch = context_.workspace.allocate(context_.dtype, {x.dim(0), x.dim(1)});
  attention_norm_.forward(x, working.attention_norm, working.attention.input);
  attention_.decode(rows, working.attention, branch);
  mlp_norm_.forward_sum(branch, x, working.sum, working.mlp_norm, working.mlp.input);
  mlp_.forward(working.mlp, branch);
  context_.kernels.issue(device::Add{working.sum, branch, x});
}

LayerActivations TransformerLayer::restored(const MicroBatch& batch, const Tensor& x,
                                            const LayerActivations& kept) const {
  auto whole = kept;
  if (!kept.sum) {
    const SpanScope span(SpanKind::layer_recompute, {.number = layer_});
    whole = allocate(context_.workspace, Recompute::none);
    const device::ArenaScope scope(context_.workspace);
    const auto branch = context_.workspace.allocate(context_.dtype, {x.dim(0), x.dim(1)});
    forward_to_mlp(batch, x, whole, branch);
    // The layer's output is not needed again: no GEMM back, and no sum over ranks for it.
    mlp_.widen(whole.mlp);
    return whole;
  }
  whole.attention = attention_.restored(batch, kept.attention);
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
