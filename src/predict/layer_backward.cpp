// SPDX-License-Identifier: Apache-2.0
#include "layer_operations.hpp"

#include <algorithm>

namespace trireme::predict {

using config::Activation;

void LayerOperations::add_input_gradient(std::vector<Operation>& list, const Linear& linear) const {
  add(list, Part::compute, costs_.product({rows_, linear.in, linear.out}, backward_precision_));
}

void LayerOperations::add_weight(std::vector<Operation>& list, const Linear& linear) const {
  add(list, Part::compute,
      costs_.accumulated_product({linear.out, linear.in, rows_}, backward_precision_));
}

std::optional<std::size_t> LayerOperations::start(std::vector<Operation>& list, Side side) const {
  const auto started = std::count_if(list.begin(), list.end(), [](const Operation& each) {
    return each.kind == Operation::Kind::start;
  });
  const auto before = list.size();
  add_exchange(list, side);
  if (list.size() == before || !starts_collectives_) return std::nullopt;
  list.back().kind = Operation::Kind::start;
  return static_cast<std::size_t>(started);
}

void LayerOperations::join(std::vector<Operation>& list, std::optional<std::size_t> started) {
  if (!started) return;
  list.push_back({.part = Part::tensor, .kind = Operation::Kind::join, .started = *started});
}

std::vector<Operation> LayerOperations::computed_again(const config::ActivationSet& again,
                                                       BackwardHalf half) const {
  if (again.has(Activation::layer)) {
    auto list = attention_half();
    const auto mlp = mlp_half(workload_.program.recomputes_last_product);
    list.insert(list.end(), mlp.begin(), mlp.end());
    return list;
  }
  std::vector<Operation> list;
  if (again.has(Activation::mlp)) {
    // As a whole, backward gathers these rows once, for the gradient of the weights, too.
    if (half == BackwardHalf::input || gathers_inputs_) add_exchange(list, Side::gather);
    add_product(list, up_);
  }
  if (again.has(Activation::mlp) || again.has(Activation::activation)) add_activation(list, 1);
  if (again.has(Activation::norms)) add_norm(list, 2);
  if (again.has(Activation::attention)) add(list, Part::compute, costs_.attention(attention()));
  return list;
}

/// The order in which layers issue their operations (layers/part_backward.cpp).
std::vector<Operation> LayerOperations::backward(const config::ActivationSet& again,
                                                 BackwardHalf half) const {
  auto list = computed_again(again, half);
  const bool has_weights = half == BackwardHalf::both;
  // Rows that were gathered to compute them again serve both.
  const bool gathers_all = has_weights && gathers_inputs_ && !again.has(Activation::layer);
  const bool gathers_mlp = gathers_all && !again.has(Activation::mlp);
  add_sum(list, backward_passes);
  auto gradient = start(list, Side::gather);
  const auto mlp_input = gathers_mlp ? start(list, Side::gather) : std::nullopt;
  join(list, gradient);
  add_input_gradient(list, down_);
  add_activation(list, backward_passes);
  add_input_gradient(list, up_);
  auto sum = start(list, Side::scatter);
  if (has_weights) add_weight(list, down_);
  // One of the two is left for the gather of the next part's gradient, if there is one.
  const bool leaves_weight = has_weights && divides_rows_;
  if (has_weights && !leaves_weight) add_weight(list, up_);
  join(list, sum);
  add_norm(list, backward_passes);
  add_sum(list, backward_passes);
  gradient = start(list, Side::gather);
  if (leaves_weight) {
    join(list, mlp_input);
    add_weight(list, up_);
  }
  const auto attention_input = gathers_all ? start(list, Side::gather) : std::nullopt;
  join(list, gradient);
  add_input_gradient(list, out_);
  const auto time = costs_.attention_backward(attention());
  add(list, Part::compute, time);
  add_context(list, time, 2);
  add_rotations(list, backward_passes);
  add_input_gradient(list, qkv_);
  sum = start(list, Side::scatter);
  if (has_weights) {
    add_weight(list, out_);
    join(list, attention_input);
    add_weight(list, qkv_);
  }
  join(list, sum);
  add_norm(list, backward_passes);
  overlap(list);
  add_contention(list);
  return list;
}

std::vector<Operation> LayerOperations::backward_weight() const {
  std::vector<Operation> list;
  for (const auto* linear : {&down_, &up_, &out_, &qkv_}) {
    if (gathers_inputs_) add_exchange(list, Side::gather);
    add_weight(list, *linear);
  }
  overlap(list);
  return list;
}

void LayerOperations::add_contention(std::vector<Operation>& list) const {
  if (!starts_collectives_) return;
  Time collectives{};
  for (const auto& operation : list) {
    if (operation.part == Part::tensor) collectives += operation.time;
  }
  const auto beside = collectives - sum_of(list).tensor;
  list.push_back({Part::compute, time_of(taken_ * seconds_of(beside)), {}});
}

}  // namespace trireme::predict
