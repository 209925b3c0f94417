// SPDX-License-Identifier: Apache-2.0
#include "layer_operations.hpp"

#include <algorithm>
#include <iterator>

namespace trireme::predict {
namespace {

using config::Activation;

/// Tensors that a sum with the residual stream reads and writes: once each where passes are fused;
/// else again for what is computed between them.
constexpr double sum_tensors(bool fused) {
  return fused ? 2 : 4;
}
/// Operations of a layer's forward that are issued.
constexpr int forward_operations = 10;

double ratio(std::int64_t whole, int parts) {
  return static_cast<double>(whole) / parts;
}

}  // namespace

LayerOperations::LayerOperations(const Machine& machine, const Workload& workload,
                                 const Placement& placement, const OperationCosts& costs,
                                 const Links& links)
    : workload_(workload),
      costs_(costs),
      links_(links),
      on_cores_(machine.node.computes_on_cores()) {
  const auto& shape = workload.shape;
  const auto& program = workload.program;
  const int tensor = workload.degrees.tensor;
  tensor_ = placement.group(tensor, 1);
  context_ = placement.group(workload.degrees.context, tensor);
  const bool narrow_forward_only = program.precision == Precision::fp8 && !program.fp8_backward;
  backward_precision_ = narrow_forward_only ? Precision::bf16 : program.precision;
  head_precision_ = program.precision == Precision::fp8 ? Precision::bf16 : program.precision;
  rows_ = ratio(workload.micro_batches.sequences * shape.sequence, workload.degrees.context);
  own_rows_ = program.sequence_parallel ? rows_ / tensor : rows_;
  const auto hidden = static_cast<double>(shape.hidden);
  const double width = ratio(shape.intermediate, tensor);
  qkv_ = {hidden, ratio(shape.query_width() + 2 * shape.kv_width(), tensor)};
  out_ = {ratio(shape.query_width(), tensor), hidden};
  up_ = {hidden, shape.gated_mlp ? 2 * width : width};
  down_ = {width, hidden};
  head_ = {hidden, ratio(shape.vocabulary, tensor)};
  // Where cores compute, the thread that computes moves the data, too.
  starts_collectives_ = program.tensor_overlap == TensorOverlap::weights && !on_cores_;
  divides_rows_ = program.sequence_parallel && tensor > 1;
  gathers_inputs_ = divides_rows_ && program.gathers_rows_again;
  const auto& tiles = machine.tiles;
  if (tiles.processors > 0) taken_ = ratio(tiles.for_collectives, tiles.processors);
  call_gap_ = time_of(program.launch_gap);
  gap_ = time_of(program.launch_gap * program.launches / forward_operations);
}

void LayerOperations::add(std::vector<Operation>& list, Part part, Time time) const {
  // A collective is one call; a step of a layer several.
  const auto issue = part == Part::tensor ? call_gap_ : gap_;
  // A core that computes issues nothing meanwhile.
  list.push_back(on_cores_ ? Operation{part, time + issue, {}} : Operation{part, time, issue});
}

void LayerOperations::add_product(std::vector<Operation>& list, const Linear& linear) const {
  add(list, Part::compute,
      costs_.product({rows_, linear.out, linear.in}, workload_.program.precision));
}

Time LayerOperations::pass(double factor, double elements) const {
  return costs_.pass(factor * costs_.element_bytes() * elements);
}

void LayerOperations::add_norm(std::vector<Operation>& list, double factor) const {
  const double tensors = row_tensors();
  add(list, Part::compute,
      pass(factor * tensors, own_rows_ * static_cast<double>(workload_.shape.hidden)));
}

double LayerOperations::row_tensors() const {
  return workload_.program.fused_passes ? 2 : 3;
}

void LayerOperations::add_rotations(std::vector<Operation>& list, double factor) const {
  add(list, Part::compute, pass(factor * row_tensors(), rows_ * qkv_.out));
}

void LayerOperations::add_activation(std::vector<Operation>& list, double factor) const {
  add(list, Part::compute, pass(factor, rows_ * (up_.out + down_.in)));
}

void LayerOperations::add_sum(std::vector<Operation>& list, double factor) const {
  const double tensors = sum_tensors(workload_.program.fused_passes);
  add(list, Part::compute,
      pass(factor * tensors, own_rows_ * static_cast<double>(workload_.shape.hidden)));
}

void LayerOperations::add_exchange(std::vector<Operation>& list, Side side) const {
  if (tensor_.size == 1) return;
  const double bytes = costs_.element_bytes() * rows_ * static_cast<double>(workload_.shape.hidden);
  const bool gathers = side == Side::gather;
  if (workload_.program.sequence_parallel) {
    const auto kind = gathers ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter;
    add(list, Part::tensor, links_.collective(kind, bytes, tensor_));
  } else if (!gathers) {
    add(list, Part::tensor, links_.collective(CollectiveKind::all_reduce, bytes, tensor_));
  }
}

/// Keys and values pass round the ring beside the attention with those that are there.
void LayerOperations::add_context(std::vector<Operation>& list, Time attention,
                                  double factor) const {
  if (context_.size == 1) return;
  const double bytes = factor * costs_.element_bytes() * rows_ * 2 *
                       ratio(workload_.shape.kv_width(), tensor_.size) * context_.size;
  const auto ring = links_.collective(CollectiveKind::all_gather, bytes, context_);
  add(list, Part::tensor, std::max(ring - attention, Time::zero()));
}

Attention LayerOperations::attention() const {
  const auto& shape = workload_.shape;
  const int tensor = tensor_.size;
  return {.rows = rows_,
          .keys = static_cast<double>(shape.sequence),
          .query_width = ratio(shape.query_width(), tensor),
          .kv_width = ratio(shape.kv_width(), tensor),
          .heads = ratio(shape.heads, tensor),
          .fused = workload_.program.fused_attention};
}

std::vector<Operation> LayerOperations::attention_half() const {
  std::vector<Operation> list;
  add_norm(list, 1);
  add_exchange(list, Side::gather);
  add_product(list, qkv_);
  add_rotations(list, 1);
  const auto time = costs_.attention(attention());
  add(list, Part::compute, time);
  add_context(list, time, 1);
  add_product(list, out_);
  add_exchange(list, Side::scatter);
  add_sum(list, 1);
  return list;
}

std::vector<Operation> LayerOperations::mlp_half(bool last_product) const {
  std::vector<Operation> list;
  add_norm(list, 1);
  add_exchange(list, Side::gather);
  add_product(list, up_);
  add_activation(list, 1);
  if (!last_product) return list;
  add_product(list, down_);
  add_exchange(list, Side::scatter);
  add_sum(list, 1);
  return list;
}

Operation LayerOperations::begin() const {
  return {
      Part::compute, {}, on_cores_ ? Time::zero() : call_gap_ * workload_.program.action_launches};
}

std::vector<Operation> LayerOperations::forward() const {
  auto list = attention_half();
  const auto mlp = mlp_half(true);
  list.insert(list.end(), mlp.begin(), mlp.end());
  overlap(list);
  return list;
}

void LayerOperations::overlap(std::vector<Operation>& list) const {
  if (workload_.program.tensor_overlap != TensorOverlap::pieces || tensor_.size == 1) return;
  Time tensor{};
  Time compute{};
  for (const auto& operation : list) {
    (operation.part == Part::tensor ? tensor : compute) += operation.time;
  }
  if (tensor == Time::zero()) return;
  // Products and collectives go on in as many pieces as there are ranks: the first piece of a
  // gather and the last of a scatter have no product beside them.
  const auto exposed = std::max(tensor / tensor_.size, tensor - compute);
  Time left = exposed;
  for (auto& operation : list) {
    if (operation.part != Part::tensor) continue;
    operation.time = std::min(left, operation.time);
    left -= operation.time;
  }
}

std::vector<Operation> LayerOperations::embedding() const {
  std::vector<Operation> list;
  add(list, Part::compute, pass(2, rows_ * static_cast<double>(workload_.shape.hidden)));
  add_exchange(list, Side::scatter);
  return list;
}

std::vector<Operation> LayerOperations::embedding_backward() const {
  std::vector<Operation> list;
  add_exchange(list, Side::gather);
  constexpr double tensors = 5;  // the gradient, and a table's rows in fp32 twice
  add(list, Part::compute, pass(tensors, rows_ * static_cast<double>(workload_.shape.hidden)));
  return list;
}

std::vector<Operation> LayerOperations::head() const {
  std::vector<Operation> list;
  add_norm(list, 1);
  add_exchange(list, Side::gather);
  add(list, Part::compute, costs_.product({rows_, head_.out, head_.in}, head_precision_));
  add(list, Part::compute, costs_.pass(workload_.program.loss_bytes * rows_ * head_.out));
  return list;
}

std::vector<Operation> LayerOperations::head_backward() const {
  std::vector<Operation> list;
  add(list, Part::compute, costs_.product({rows_, head_.in, head_.out}, head_precision_));
  add(list, Part::compute,
      costs_.accumulated_product({head_.out, head_.in, rows_}, head_precision_));
  add_exchange(list, Side::scatter);
  add_norm(list, backward_passes);
  return list;
}

double LayerOperations::product_share() const {
  const auto precision = workload_.program.precision;
  double large = 0;
  double seconds = 0;
  for (const auto* linear : {&qkv_, &out_, &up_, &down_}) {
    const Product product{rows_, linear->out, linear->in};
    // FLOPs alone are not counted in fp8; rates of one shape differ as peaks do.
    const double faster = costs_.rate(product, precision) / costs_.rate(product, head_precision_);
    large += seconds_of(costs_.flops(2 * product.m * product.n * product.k)) / faster;
    seconds += seconds_of(costs_.product(product, precision));
  }
  return large / seconds;
}

}  // namespace trireme::predict
