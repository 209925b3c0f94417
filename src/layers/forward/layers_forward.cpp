// SPDX-License-Identifier: Apache-2.0
#include "layers_forward.hpp"

#include <utility>

namespace trireme::layers {

using device::Tensor;
using telemetry::SpanKind;

namespace {

/// The micro-batch as parts see it that have these rows of it.
MicroBatch of_sequences(MicroBatch batch, const SequenceRows& rows) {
  batch.first_sequence += rows.first_sequence;
  batch.first_keys = rows.of_rows(batch.first_keys);
  return batch;
}

}  // namespace

LayersForward::LayersForward(const StageContext& context, const MicroBatch& batch,
                             std::vector<Step> steps)
    : context_(context),
      rows_(forward_turns(context)),
      batch_(batch),
      steps_(std::move(steps)),
      scope_(context.workspace),
      branch_(context.stream(context.workspace)),
      room_(room_for_rows(context, context.workspace)),
      inputs_(rows_.size()),
      sums_(rows_.size()) {
  for (const auto& rows : rows_) batches_.push_back(of_sequences(batch, rows));
  for (const auto& step : steps_) step.layer.add_border(context.workspace, step.kept, border_);
}

LayersForward::Turn LayersForward::turn_at(std::size_t number) const {
  const auto part = number / rows_.size();
  return {part / 2, part % 2 == 0, number % rows_.size()};
}

const LayerPart& LayersForward::part_of(const Turn& turn) const {
  const auto& layer = steps_[turn.step].layer;
  if (turn.is_mixer) return layer.mixer();
  return layer.channel();
}

const PartActivations& LayersForward::kept_of(const Turn& turn) const {
  const auto& half = halves_[turn.step % 2][turn.half];
  return turn.is_mixer ? *half.mixer : *half.channel;
}

void LayersForward::run() {
  const auto turns = 2 * steps_.size() * rows_.size();
  if (turns == 0) return;
  open(0, 0);
  for (std::size_t number = 0; number < turns; ++number) {
    const auto turn = turn_at(number);
    run_wide(turn);
    if (takes_halves() && room_) go_on_beside(number);
    part_of(turn).forward_middle(batches_[turn.half], kept_of(turn));
    if (takes_halves() && !room_) go_on_beside(number);
    run_back(turn);
    if (!takes_halves()) settle(turn);
    if (ends_layer(turn)) close(turn.step);
    if (!takes_halves()) open_next(turn);
  }
  if (takes_halves()) settle(turn_at(turns - 1));
}

void LayersForward::open(std::size_t step, std::size_t half) {
  const auto& [layer, place, kept, x, out] = steps_[step];
  if (half == 0) {
    leases_[step % 2].emplace(context_.weights, place, Pass::forward);
    span_.emplace(SpanKind::layer_forward, telemetry::SpanPlace{.number = place.layer});
  }
  const auto& rows = rows_[half];
  const auto& norm = kept.sum ? kept.mixer_norm : border_.mixer_norm;
  const auto input = rows.of_local(kept.mixer->input ? kept.mixer->input : border_.input);
  if (rows.local_count > 0) {
    layer.enter_mixer(rows.of_local(x), {rows.of_local(norm.mean), rows.of_local(norm.rstd)},
                      input);
  }
  start_gather(half, input);
}

void LayersForward::start_gather(std::size_t half, const Tensor& input) {
  const auto& rows = rows_[half];
  inputs_[half] = start_gather_rows(context_, input, rows.of_rows(room_),
                                    rows.cuts(context_.config.hidden_size));
}

void LayersForward::run_wide(const Turn& turn) {
  const auto& [layer, place, kept, x, out] = steps_[turn.step];
  if (turn.is_mixer && turn.half == 0) {
    layer_scope_.emplace(context_.workspace);
    const auto whole = layer.completed(kept, border_, {});
    auto& halves = halves_[turn.step % 2];
    halves.clear();
    for (const auto& rows : rows_) halves.push_back(layer.part_of(whole, rows));
  }
  part_of(turn).forward_wide(kept_of(turn), inputs_[turn.half].join());
}

void LayersForward::run_back(const Turn& turn) {
  const auto& rows = rows_[turn.half];
  const auto out = rows.of_local(branch_);
  const auto terms = room_ ? rows.of_rows(room_) : out;
  part_of(turn).forward_back(kept_of(turn), terms);
  sums_[turn.half] = start_sum_rows(context_, terms, out, rows.cuts(context_.config.hidden_size));
}

void LayersForward::settle(const Turn& turn) {
  const auto& [layer, place, kept, x, out] = steps_[turn.step];
  const auto& rows = rows_[turn.half];
  const auto& half = halves_[turn.step % 2][turn.half];
  const auto branch = rows.of_local(branch_);
  sums_[turn.half].join();
  if (!turn.is_mixer) {
    if (rows.local_count > 0) layer.leave(batch_, rows, half.sum, branch, rows.of_local(out));
    return;
  }
  if (rows.local_count > 0) layer.enter_channel(batch_, rows, rows.of_local(x), branch, half);
  start_gather(turn.half, half.channel->input);
}

void LayersForward::open_next(const Turn& turn) {
  if (!turn.is_mixer && turn.step + 1 < steps_.size()) open(turn.step + 1, turn.half);
}

void LayersForward::go_on_beside(std::size_t number) {
  if (number == 0) return open(0, 1);
  const auto other = turn_at(number - 1);
  settle(other);
  open_next(other);
}

void LayersForward::close(std::size_t step) {
  layer_scope_.reset();
  leases_[step % 2]->end();
  leases_[step % 2].reset();
  // Halves have begun the next layer.
  if (!takes_halves()) span_.reset();
  context_.progress();
}

}  // namespace trireme::layers
