// SPDX-License-Identifier: Apache-2.0
#include "mlp.hpp"

#include "trireme/base/format.hpp"

#include "linear.hpp"
#include "tensor_parallel.hpp"

namespace trireme::layers {

using device::Tensor;

MlpBlock::MlpBlock(const StageContext& context, const model::StageParameters& stage, int layer)
    : context_(context), gated_(context.config.family().gated_mlp) {
  const auto prefix = base::format("layers.{}.mlp.", layer);
  wide_ = factor(context, stage, prefix + (gated_ ? "gate_up" : "up"));
  down_ = factor(context, stage, prefix + "down");
  width_ = down_.weight.dim(1);
}

MlpActivations MlpBlock::allocate(device::Arena& arena) const {
  const auto rows = context_.rows();
  MlpActivations kept;
  kept.input = arena.allocate(context_.dtype, {context_.local_rows(), context_.config.hidden_size});
  kept.wide = arena.allocate(context_.dtype, {rows, gated_ ? 2 * width_ : width_});
  kept.activated = arena.allocate(context_.dtype, {rows, width_});
  return kept;
}

void MlpBlock::widen(const MlpActivations& kept) const {
  auto& kernels = context_.kernels;
  const auto input = gather_rows(context_, kept.input);
  if (!gated_ && context_.linear_forward == LinearForward::plain) {
    kernels.issue(device::LinearGeluForward{
        .x = input, .w = wide_.weight, .bias = wide_.bias, .wide = kept.wide, .y = kept.activated});
    return;
  }
  linear_forward(context_, input, wide_, wide_.bias, kept.wide);
  if (!gated_) {
    kernels.issue(device::GeluForward{kept.wide, kept.activated});
    return;
  }
  kernels.issue(device::SwigluForward{kept.wide.slice(1, 0, width_),
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
      gradients.d_wide, gather_rows(context_, kept.input), wide_.d_weight, wide_.d_bias});
}

}  // namespace trireme::layers
