// SPDX-License-Identifier: Apache-2.0
#include "mlp.hpp"

#include "trireme/base/format.hpp"

#include "linear.hpp"
#include "tensor_parallel.hpp"

namespace trireme::layers {

using device::Tensor;

namespace {

const MlpActivations& mlp_of(const PartActivations& kept) {
  return static_cast<const MlpActivations&>(kept);
}

}  // namespace

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

LayerPart::Kept MlpBlock::allocate(device::Arena& arena, ActivationSet discarded) const {
  auto kept = std::make_unique<MlpActivations>();
  if (discarded.has(Activation::layer)) return kept;
  if (!gated_ && !discarded.has(Activation::mlp)) kept->wide = place_of_wide(arena);
  return kept;
}

PartOperands MlpBlock::allocate_operands(device::Arena& arena, ActivationSet discarded) const {
  PartOperands operands;
  if (discarded.has(Activation::layer)) return operands;
  const bool keeps_wide = !discarded.has(Activation::mlp);
  if (!discarded.has(Activation::norms)) operands.input = context_.stream(arena);
  if (keeps_wide && gated_) operands.wide = place_of_wide(arena);
  if (keeps_wide && !discarded.has(Activation::activation)) {
    operands.middle = place_of_activated(arena);
  }
  return operands;
}

void MlpBlock::bind(PartActivations& kept, const PartOperands& operands) const {
  LayerPart::bind(kept, operands);
  if (gated_) static_cast<MlpActivations&>(kept).wide = operands.wide;
}

LayerPart::Kept MlpBlock::completed(const PartActivations& kept,
                                    const PartGradients& gradients) const {
  auto& arena = context_.workspace;
  auto whole = std::make_unique<MlpActivations>(mlp_of(kept));
  if (!whole->input) whole->input = gradients.input;
  if (!whole->input) whole->input = context_.stream(arena);
  if (!whole->wide && gated_) whole->wide = gradients.d_wide;
  if (!whole->wide) whole->wide = place_of_wide(arena);
  if (!whole->middle) whole->middle = gradients.middle;
  if (!whole->middle) whole->middle = place_of_activated(arena);
  return whole;
}

Tensor MlpBlock::place_of_gradient(device::Arena& arena, const PartActivations& kept) const {
  // SwiGLU's gradient of an element reads that element alone; the other's is a GEMM's epilogue.
  return gated_ ? mlp_of(kept).wide : place_of_wide(arena);
}

PartGradients MlpBlock::allocate_left(device::Arena& arena, ActivationSet discarded) const {
  PartGradients gradients;
  const bool all = discarded.has(Activation::layer);
  if (all || discarded.has(Activation::mlp) || !gated_) gradients.d_wide = place_of_wide(arena);
  if (all || discarded.has(Activation::norms)) gradients.input = context_.stream(arena);
  if (all || discarded.has(Activation::mlp) || discarded.has(Activation::activation)) {
    gradients.middle = place_of_activated(arena);
  }
  return gradients;
}

LayerPart::Kept MlpBlock::part_of(const PartActivations& kept, const SequenceRows& rows) const {
  auto part = std::make_unique<MlpActivations>();
  part->input = rows.of_local(kept.input);
  part->middle = rows.of_rows(kept.middle);
  part->wide = rows.of_rows(mlp_of(kept).wide);
  return part;
}

void MlpBlock::forward_wide(const PartActivations& part, const Tensor& input) const {
  const auto& kept = mlp_of(part);
  if (fused_gelu_) {
    context_.kernels.issue(device::LinearGeluForward{
        .x = input, .w = wide_.weight, .bias = wide_.bias, .wide = kept.wide, .y = kept.middle});
    return;
  }
  linear_forward(context_, input, wide_, wide_.bias, kept.wide);
}

void MlpBlock::activate(const MlpActivations& kept) const {
  if (!gated_) {
    context_.kernels.issue(device::GeluForward{kept.wide, kept.middle});
    return;
  }
  context_.kernels.issue(device::SwigluForward{kept.wide.slice(1, 0, width_),
                                               kept.wide.slice(1, width_, width_), kept.middle});
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

void MlpBlock::forward_middle(const MicroBatch& /*batch*/, const PartActivations& kept) const {
  if (!fused_gelu_) activate(mlp_of(kept));
}

void MlpBlock::forward_back(const PartActivations& kept, const Tensor& terms) const {
  linear_forward(context_, kept.middle, down_, bias_of_one(context_, down_.bias), terms);
}

void MlpBlock::restore(const MicroBatch& batch, const PartActivations& kept,
                       PartActivations& whole) const {
  if (!mlp_of(kept).wide) {
    // One gather serves the product that is computed again and the weight's gradient.
    if (!whole.all_rows) whole.all_rows = room_for_rows(context_, context_.workspace);
    forward_wide(whole, gather_rows(context_, whole.input, whole.all_rows));
    forward_middle(batch, whole);
  } else if (!kept.middle) {
    activate(mlp_of(whole));
  }
}

void MlpBlock::backward_input(const MicroBatch& /*batch*/, const PartActivations& kept,
                              const PartGradients& gradients, const Tensor& terms) const {
  const device::ArenaScope scope(context_.workspace);
  backward_to_wide(mlp_of(kept), gradients.d_out, gradients.d_wide);
  context_.kernels.issue(device::LinearBackwardInput{gradients.d_wide, wide_.weight, terms});
}

void MlpBlock::backward_weight_back(const Tensor& middle, const PartGradients& gradients) const {
  context_.kernels.issue(
      device::LinearBackwardWeight{gradients.d_out, middle, down_.d_weight, down_.d_bias});
}

void MlpBlock::backward_weight_wide(const Tensor& rows, const PartGradients& gradients,
                                    WideColumns columns) const {
  add_weight_gradient(context_, gradients.d_wide, rows, wide_, columns);
}

}  // namespace trireme::layers
