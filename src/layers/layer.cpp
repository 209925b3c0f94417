// SPDX-License-Identifier: Apache-2.0
#include "layer.hpp"

#include "trireme/base/format.hpp"
#include "trireme/telemetry/spans.hpp"

#include "layers/attention/attention.hpp"
#include "layers/rows/dropout.hpp"
#include "mlp.hpp"
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
      mixer_norm_(context, stage, base::format("layers.{}.attention_norm", layer)),
      mixer_(std::make_unique<AttentionBlock>(context, stage, layer, rotary)),
      channel_norm_(context, stage, base::format("layers.{}.mlp_norm", layer)),
      channel_(std::make_unique<MlpBlock>(context, stage, layer, discarded)) {}

LayerActivations TransformerLayer::allocate(device::Arena& arena, ActivationSet discarded) const {
  LayerActivations kept;
  const bool keeps_any = !discarded.has(Activation::layer);
  if (keeps_any) kept.mixer_norm = mixer_norm_.allocate(arena);
  kept.mixer = mixer_->allocate(arena, discarded);
  if (keeps_any) kept.sum = context_.stream(arena);
  if (keeps_any) kept.channel_norm = channel_norm_.allocate(arena);
  kept.channel = channel_->allocate(arena, discarded);
  return kept;
}

LayerOperands TransformerLayer::allocate_operands(device::Arena& arena,
                                                  ActivationSet discarded) const {
  return {mixer_->allocate_operands(arena, discarded),
          channel_->allocate_operands(arena, discarded)};
}

void TransformerLayer::bind(LayerActivations& kept, const LayerOperands& operands) const {
  mixer_->bind(*kept.mixer, operands.mixer);
  channel_->bind(*kept.channel, operands.channel);
}

void TransformerLayer::add_border(device::Arena& arena, const LayerActivations& kept,
                                  BorderActivations& border) const {
  if (!kept.mixer->input && !border.input) border.input = context_.stream(arena);
  if (kept.sum || border.sum) return;
  border.mixer_norm = mixer_norm_.allocate(arena);
  border.sum = context_.stream(arena);
}

LayerActivations TransformerLayer::completed(const LayerActivations& kept,
                                             const BorderActivations& border,
                                             const LayerGradients& left) const {
  LayerActivations whole{kept.mixer_norm, {}, kept.sum, kept.channel_norm, {}};
  if (!kept.sum) {
    whole.mixer_norm = border.mixer_norm;
    whole.sum = border.sum;
    whole.channel_norm = channel_norm_.allocate(context_.workspace);
  }
  auto places = left.mixer;
  places.input = border.input;
  whole.mixer = mixer_->completed(*kept.mixer, places);
  whole.channel = channel_->completed(*kept.channel, left.channel);
  return whole;
}

LayerActivations TransformerLayer::part_of(const LayerActivations& whole,
                                           const SequenceRows& rows) const {
  const auto statistics = [&](const NormStatistics& kept) {
    return NormStatistics{rows.of_local(kept.mean), rows.of_local(kept.rstd)};
  };
  return {statistics(whole.mixer_norm), mixer_->part_of(*whole.mixer, rows),
          rows.of_local(whole.sum), statistics(whole.channel_norm),
          channel_->part_of(*whole.channel, rows)};
}

void TransformerLayer::drop(const MicroBatch& batch, const char* site, const Tensor& from,
                            const Tensor& to, std::int64_t first) const {
  apply_residual_dropout(context_, batch, site, layer_, from, to, first);
}

Tensor TransformerLayer::through_dropout(const MicroBatch& batch, const char* site,
                                         const Tensor& d_out, const Tensor& room) const {
  if (batch.dropout == 0.0F) return d_out;
  const auto masked =
      room ? room : context_.workspace.allocate(context_.dtype, {d_out.dim(0), d_out.dim(1)});
  drop(batch, site, d_out, masked);
  return masked;
}

void TransformerLayer::enter_mixer(const Tensor& x, const NormStatistics& kept,
                                   const Tensor& input) const {
  mixer_norm_.forward(x, kept, input);
}

void TransformerLayer::enter_channel(const MicroBatch& batch, const SequenceRows& rows,
                                     const Tensor& x, const Tensor& branch,
                                     const LayerActivations& kept) const {
  if (batch.dropout > 0.0F) {
    drop(batch, "dropout.attention.output", branch, branch, rows.first_local);
  }
  channel_norm_.forward_sum(branch, x, kept.sum, kept.channel_norm, kept.channel->input);
}

void TransformerLayer::leave(const MicroBatch& batch, const SequenceRows& rows, const Tensor& sum,
                             const Tensor& branch, const Tensor& out) const {
  if (batch.dropout > 0.0F) drop(batch, "dropout.mlp.output", branch, branch, rows.first_local);
  context_.kernels.issue(device::Add{sum, branch, out});
}

void TransformerLayer::run_part(const MicroBatch& batch, const LayerPart& part,
                                const PartActivations& kept, const Tensor& out) const {
  part.forward_wide(kept, gather_rows(context_, kept.input, kept.all_rows));
  part.forward_middle(batch, kept);
  const auto terms = terms_of(context_, out);
  part.forward_back(kept, terms);
  sum_rows(context_, terms, out);
}

void TransformerLayer::decode(const CachedRows& rows, const Tensor& x) const {
  const device::ArenaScope scope(context_.workspace);
  auto working = allocate(context_.workspace, {});
  bind(working, allocate_operands(context_.workspace, {}));
  const auto branch = context_.workspace.allocate(context_.dtype, {x.dim(0), x.dim(1)});
  mixer_norm_.forward(x, working.mixer_norm, working.mixer->input);
  mixer_->decode(rows, *working.mixer, branch);
  channel_norm_.forward_sum(branch, x, working.sum, working.channel_norm, working.channel->input);
  run_part({}, *channel_, *working.channel, branch);
  context_.kernels.issue(device::Add{working.sum, branch, x});
}

void TransformerLayer::forward_again(const MicroBatch& batch, const Tensor& x,
                                     const LayerActivations& kept,
                                     const LayerActivations& whole) const {
  // One gather serves the product that is computed again and the weight's gradient.
  whole.mixer->all_rows = room_for_rows(context_, context_.workspace);
  whole.channel->all_rows = room_for_rows(context_, context_.workspace);
  const device::ArenaScope scope(context_.workspace);
  const auto branch = context_.stream(context_.workspace);
  enter_mixer(x, whole.mixer_norm, whole.mixer->input);
  run_part(batch, *mixer_, *whole.mixer, branch);
  enter_channel(batch, {}, x, branch, whole);
  // The layer's output is not needed again: no GEMM back, and no sum over ranks for it.
  channel_->restore(batch, *kept.channel, *whole.channel);
}

LayerActivations TransformerLayer::restored(const MicroBatch& batch, const Tensor& x,
                                            const LayerActivations& kept,
                                            const LayerGradients& left) const {
  const SpanScope span(SpanKind::layer_recompute, {.number = layer_});
  BorderActivations border{{}, left.mixer.input, {}};
  add_border(context_.workspace, kept, border);
  auto whole = completed(kept, border, left);
  if (!kept.sum) {
    forward_again(batch, x, kept, whole);
    return whole;
  }
  if (!kept.mixer->input) mixer_norm_.again(x, whole.mixer->input);
  mixer_->restore(batch, *kept.mixer, *whole.mixer);
  if (!kept.channel->input) channel_norm_.again(whole.sum, whole.channel->input);
  channel_->restore(batch, *kept.channel, *whole.channel);
  return whole;
}

void TransformerLayer::backward(const MicroBatch& batch, const Tensor& x,
                                const LayerActivations& kept, const Tensor& d_out,
                                const Tensor& d_x, BackwardRooms& rooms) const {
  const device::ArenaScope scope(context_.workspace);
  LayerActivations again;
  if (!discarded_.empty()) again = restored(batch, x, kept, {});
  propagate(batch, x, discarded_.empty() ? kept : again, d_out, d_x, Weights::beside_collectives,
            {}, rooms);
}

bool TransformerLayer::weights_read_output_gradient() const {
  return context_.config.dropout == 0.0F;
}

LayerGradients TransformerLayer::allocate_left(device::Arena& arena) const {
  LayerGradients left;
  left.mixer = mixer_->allocate_left(arena, discarded_);
  left.channel = channel_->allocate_left(arena, discarded_);
  left.mixer.d_out = context_.stream(arena);
  if (!weights_read_output_gradient()) left.channel.d_out = context_.stream(arena);
  return left;
}

void TransformerLayer::backward_input(const MicroBatch& batch, const Tensor& x,
                                      const LayerActivations& kept, const Tensor& d_out,
                                      const Tensor& d_x, const LayerGradients& left,
                                      BackwardRooms& rooms) const {
  const device::ArenaScope scope(context_.workspace);
  LayerActivations again;
  if (!discarded_.empty()) again = restored(batch, x, kept, left);
  propagate(batch, x, discarded_.empty() ? kept : again, d_out, d_x, Weights::later, left, rooms);
}

void TransformerLayer::backward_weight(const LayerOperands& kept, const Tensor& d_out,
                                       const LayerGradients& left) const {
  const SpanScope span(SpanKind::layer_backward_weight, {.number = layer_});
  add_weight_gradients(*channel_, kept.channel, left.channel.d_out ? left.channel.d_out : d_out,
                       left.channel);
  add_weight_gradients(*mixer_, kept.mixer, left.mixer.d_out, left.mixer);
}

void TransformerLayer::propagate(const MicroBatch& batch, const Tensor& x,
                                 const LayerActivations& whole, const Tensor& d_out,
                                 const Tensor& d_x, Weights weights, const LayerGradients& left,
                                 BackwardRooms& rooms) const {
  using Beside = WeightProducts::Beside;
  BackwardSpan span(layer_);
  auto& arena = context_.workspace;
  const bool is_together = weights != Weights::later;
  const bool gathers_inputs = is_together && !(whole.channel->all_rows && whole.mixer->all_rows);
  const auto inputs = gathers_inputs ? room_for_rows(context_, arena) : Tensor{};
  // The channel part's input is still read where its weights lie beside the mixer's sum.
  const bool has_own = gathers_inputs && cuts_weights(context_);
  const auto mixer_inputs = has_own ? room_for_rows(context_, arena) : inputs;
  const auto with_room = [&](const LayerPart& part, const PartActivations& kept,
                             PartGradients given) {
    if (!given.d_wide) given.d_wide = part.place_of_gradient(arena, kept);
    return given;
  };
  PartBackward channel(context_, *channel_, *whole.channel,
                       with_room(*channel_, *whole.channel, left.channel),
                       {rooms.turns[0], rooms.turns[1], inputs});
  PartBackward mixer(context_, *mixer_, *whole.mixer, with_room(*mixer_, *whole.mixer, left.mixer),
                     {rooms.turns[1], rooms.turns[0], mixer_inputs});
  WeightProducts products(span);
  if (is_together) products.add(context_, channel, mixer);
  const auto stays = left.mixer.d_out;
  const auto d_norm = context_.stream(arena);
  const auto d_sum = stays && weights_read_output_gradient() ? stays : context_.stream(arena);

  const auto d_channel = through_dropout(batch, "dropout.mlp.output", d_out, left.channel.d_out);
  channel.start(d_channel, std::exchange(rooms.d_out, {}));
  if (is_together) channel.start_input_gather();
  auto sum = channel.run(batch, d_norm);
  products.run(Beside::channel_sum);
  sum.join();
  channel_norm_.backward(d_norm, whole.sum, whole.channel_norm, d_out, d_sum);
  const auto d_mixer = through_dropout(batch, "dropout.attention.output", d_sum, stays);
  mixer.start(d_mixer);
  products.run(Beside::mixer_gather);
  if (is_together) mixer.start_input_gather();
  sum = mixer.run(batch, d_norm);
  products.run(Beside::mixer_sum);
  sum.join();
  mixer_norm_.backward(d_norm, x, whole.mixer_norm, d_sum, d_x);
  // A mask would come before the gather.
  if (products.any(Beside::next_gather) && rooms.goes_on && batch.dropout == 0.0F) {
    rooms.d_out = start_gather_rows(context_, d_x, rooms.turns[0]);
  }
  products.run(Beside::next_gather);
}

void TransformerLayer::add_weight_gradients(const LayerPart& part, const PartOperands& kept,
                                            const Tensor& d_out, PartGradients left) const {
  const device::ArenaScope scope(context_.workspace);
  left.d_out = gather_rows(context_, d_out);
  if (!left.d_wide) left.d_wide = kept.wide;
  part.backward_weight_back(kept.middle ? kept.middle : left.middle, left);
  part.backward_weight_wide(gather_rows(context_, kept.input ? kept.input : left.input), left,
                            WideColumns::all);
}

}  // namespace trireme::layers
