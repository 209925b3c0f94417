// SPDX-License-Identifier: Apache-2.0
#include "part_backward.hpp"

namespace trireme::layers {

using device::Tensor;
using telemetry::SpanKind;

void PartBackward::start_input_gather() {
  input_ = kept_.all_rows ? PendingRows{kept_.all_rows, {}}
                          : start_gather_rows(context_, kept_.input, rooms_.input);
}

void PartBackward::finish_weights(BackwardSpan& span) {
  if (!std::exchange(is_wide_left_, false)) return;
  span.enter(SpanKind::layer_backward_weight);
  part_.backward_weight_wide(input_.join(), gradients_);
  span.enter(SpanKind::layer_backward_input);
}

void PartBackward::run(const MicroBatch& batch, const Tensor& d_out, const Tensor& d_input,
                       Weights weights, PartBackward* before, BackwardSpan& span) {
  auto d_rows = start_gather_rows(context_, d_out, rooms_.d_out);
  if (before != nullptr) before->finish_weights(span);
  if (weights != Weights::later) start_input_gather();
  gradients_.d_out = d_rows.join();
  const auto terms = rooms_.terms ? rooms_.terms : d_input;
  part_.backward_input(batch, kept_, gradients_, terms);
  auto sum = start_sum_rows(context_, terms, d_input);
  if (weights != Weights::later) {
    span.enter(SpanKind::layer_backward_weight);
    part_.backward_weight_back(kept_.middle, gradients_);
    is_wide_left_ = true;
    if (weights == Weights::beside_sum) finish_weights(span);
    span.enter(SpanKind::layer_backward_input);
  }
  sum.join();
}

}  // namespace trireme::layers
