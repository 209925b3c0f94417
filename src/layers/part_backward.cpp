// SPDX-License-Identifier: Apache-2.0
#include "part_backward.hpp"

namespace trireme::layers {

using device::Tensor;
using telemetry::SpanKind;

void PartBackward::start(const Tensor& d_out, PendingRows begun) {
  d_rows_ = begun.rows ? std::move(begun) : start_gather_rows(context_, d_out, rooms_.d_out);
}

void PartBackward::start_input_gather() {
  input_ = kept_.all_rows ? PendingRows{kept_.all_rows, {}}
                          : start_gather_rows(context_, kept_.input, rooms_.input);
}

Pending PartBackward::run(const MicroBatch& batch, const Tensor& d_input) {
  gradients_.d_out = d_rows_.join();
  const auto terms = rooms_.terms ? rooms_.terms : d_input;
  part_.backward_input(batch, kept_, gradients_, terms);
  return start_sum_rows(context_, terms, d_input);
}

bool cuts_weights(const StageContext& context) {
  return context.tensor_overlap == TensorOverlap::halves && context.tensor.size() > 1;
}

void WeightProducts::add(const StageContext& context, PartBackward& channel, PartBackward& mixer) {
  const bool gathers = splits_rows(context);
  const bool halves = cuts_weights(context);
  const auto wide = [&channel](WideColumns columns) {
    return [&channel, columns] { channel.add_weight_wide(columns); };
  };
  at(Beside::channel_sum).emplace_back([&channel] { channel.add_weight_back(); });
  at(gathers ? Beside::mixer_gather : Beside::channel_sum)
      .emplace_back(wide(halves ? WideColumns::first_half : WideColumns::all));
  if (halves) at(Beside::mixer_sum).emplace_back(wide(WideColumns::second_half));
  auto& of_mixer = at(gathers && halves ? Beside::next_gather : Beside::mixer_sum);
  of_mixer.emplace_back([&mixer] { mixer.add_weight_back(); });
  of_mixer.emplace_back([&mixer] { mixer.add_weight_wide(WideColumns::all); });
}

void WeightProducts::run(Beside collective) {
  if (!any(collective)) return;
  span_.enter(SpanKind::layer_backward_weight);
  for (const auto& product : at(collective)) product();
  span_.enter(SpanKind::layer_backward_input);
}

}  // namespace trireme::layers
