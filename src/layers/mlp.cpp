// SPDX-License-Identifier: Apache-2.0
#include "mlp.hpp"

#include "trireme/base/format.hpp"

#include "linear.hpp"
#include "tensor_parallel.hpp"

namespace trireme::layers {

using device::Tensor;

MlpBlock::MlpBlock(const StageContext& context, const model::StageParameters& stage, int layer,
                   ActivationSet discarded)
    : context_(context),
      gated_(context.config.family().gated_mlp),
      fused_gelu_(!gated_ && context.linear_forward == LinearForward::plain &&
                  !discarded.has(Activation::activation)) {
  const auto prefix = base::format("layers.{}.mlp.", layer);
  wide_ = factor(context, stage, prefix + (gated_ ? "gate_up" : "up"));
  down_ = factor(context, stage, prefix + "down");
  width_ = down_.weight.dim(1);
}

Tensor MlpBlock::place_of_wide(device::Arena& arena) const {
  return arena.allocate(context_.dtype, {context_.rows(), gated_ ? 2 * width_ : width_});
}

Tensor MlpBlock::place_of_activated(device::Arena& arena) const {
  return arena.allocate(context_.dtype, {context_.rows(), width_});
}

MlpActivations MlpBlock::allocate(device::Arena& arena, ActivationSet discarded) const {
  const bool keeps_wide = !discarded.has(Activation::mlp);
  MlpActivations kept;
  if (!discarded.has(Activation::norms)) kept.input = context_.stream(arena);
  if (keeps_wide) kept.wide = place_of_wide(arena);
  if (keeps_wide && !discarded.has(Activation::activation)) {
    kept.activated = place_of_activated(arena);
  }
  return kept;
}

void MlpBlock::complete(MlpActivations& kept) const {
  auto& arena = context_.workspace;
  if (!kept.input) kept.input = context_.stream(arena);
  if (!kept.wide) kept.wide = place_of_wide(arena);
  if (!kept.activated) kept.activated = place_of_activated(arena);
}

void MlpBlock::widen(const MlpActivations& kept) const {
  const auto input = gather_rows(context_, kept.input, kept.all_rows);
  if (fused_gelu_) {
    context_.kernels.issue(device::LinearGeluForward{
        .x = input, .w = wide_.weight, .bias = wide_.bias, .wide = kept.wide, .y = kept.activated});
    return;
  }
  linear_forward(context_, input, wide_, wide_.bias, kept.wide);
  activate(kept);
}

void MlpBlock::activate(const MlpActivations& kept) const {
  if (!gated_) {
    context_.kernels.issue(device::GeluForward{kept.wide, kept.activated});
    return;
  }
  context_.kernels.issue(device::SwigluForward{kept.wide.slice(1, 0, width_),
                                               kept.wide.slice(1, width_, width_), kept.activated});
}

void MlpBlock::backward_to_wide(const MlpActivations& kept, const Tensor& d_out,
                                const Tensor& d_wide) const {
  auto& kernels = context_.kernels;
  if (!gated_) {
    kernels.issue(device::LinearBackwardGelu{d_out, down_.weight, kept.wide, d_wide});
    return;
  }
  const auto d_activated = context_.workspace.allocate(context_.dtype, {context_.rows(), width_});
  kernels.issue(device::LinearBackwardInput{d_out, down_.weight, d_activated});
  kernels.issue(device::SwigluBackward{.dy = d_activated,
                                       .gate = kept.wide.slice(1, 0, width_),
                                       .up = kept.wide.slice(1, width_, width_),
                                       .d_gate = d_wide.slice(1, 0, width_),
                                       .d_up = d_wide.slice(1, width_, width_)});
}

void MlpBlock::forward(const MlpActivations& kept, const Tensor& out) const {
  const device::ArenaScope scope(context_.workspace);
  widen(kept);
  const auto terms = terms_of(context_, out);
  linear_forward(context_, kept.activated, down_, bias_of_one(context_, down_.bias), terms);
  sum_rows(context_, terms, out);
}

MlpGradients MlpBlock::backward_input(const MlpActivations& kept, const Tensor& d_out,
                                      const Tensor& d_input) const {
  auto& kernels = context_.kernels;
  auto& arena = context_.workspace;
  MlpGradients gradients;
  gradients.d_out = gather_rows(context_, d_out);
  gradients.d_wide = arena.allocate(context_.dtype, {context_.rows(), kept.wide.dim(1)});
  const device::ArenaScope scope(arena);
  backward_to_wide(kept, gradients.d_out, gradients.d_wide);
  const auto terms = terms_of(context_, d_input);
  kernels.issue(device::LinearBackwardInput{gradients.d_wide, wide_.weight, terms});
  sum_rows(context_, terms, d_input);
  return gradients;
}

void MlpBlock::backward_weight(const MlpActivations& kept, const MlpGradients& gradients) const {
  const device::ArenaScope scope(context_.workspace);
  context_.kernels.issue(
      device::LinearBackwardWeight{gradients.d_out, kept.activated, down_.d_weight, down_.d_bias});
  context_.kernels.issue(device::LinearBackwardWeight{
      gradients.d_wide, kept.all_rows ? kept.all_rows : gather_rows(context_, kept.input),
      wide_.d_weight, wide_.d_bias});
}

}  // namespace trireme::layers
