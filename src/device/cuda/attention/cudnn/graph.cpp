// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/attention/cudnn/graph.hpp"

#include <utility>

namespace trireme::device::cudnn {
namespace {

/// Alignment that callers guarantee of every address, and that packs of the engines need.
constexpr std::int64_t alignment = 16;

Descriptor pointwise_setting(const Api& api, PointwiseMode mode, DataType precision) {
  Descriptor setting(api, Kind::pointwise);
  setting.set(Attribute::pointwise_mode, mode).set(Attribute::pointwise_precision, precision);
  return setting;
}

}  // namespace

Extents dense(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return {{a, b, c, d}, {b * c * d, c * d, d, 1}};
}

Extents transposed(const Extents& matrices) {
  auto result = matrices;
  std::swap(result.dims[2], result.dims[3]);
  std::swap(result.strides[2], result.strides[3]);
  return result;
}

Graph::Node Graph::add(std::int64_t id, const Extents& extents, DataType type, bool is_virtual,
                       bool is_by_value) {
  Descriptor tensor(*api_, Kind::tensor);
  tensor.set(Attribute::tensor_id, id)
      .set(Attribute::tensor_type, type)
      .set(Attribute::tensor_alignment, alignment)
      .set_all<std::int64_t>(Attribute::tensor_dims, extents.dims)
      .set_all<std::int64_t>(Attribute::tensor_strides, extents.strides)
      .set(Attribute::tensor_is_virtual, is_virtual)
      .set(Attribute::tensor_is_by_value, is_by_value)
      .finalize();
  tensors_.push_back(std::move(tensor));
  return {tensors_.size() - 1};
}

Graph::Node Graph::tensor(std::int64_t id, const Extents& extents, DataType type) {
  return add(id, extents, type, false, false);
}

Graph::Node Graph::scalar(std::int64_t id) {
  return add(id, dense(1, 1, 1, 1), DataType::f32, false, true);
}

Graph::Node Graph::integer(std::int64_t id) {
  return add(id, dense(1, 1, 1, 1), DataType::i32, false, true);
}

Graph::Node Graph::between(const Extents& extents, DataType type) {
  return add(next_id_++, extents, type, true, false);
}

void Graph::add_pointwise(Descriptor setting, std::array<const Node*, 4> x_b_t_y) {
  settings_.push_back(std::move(setting.finalize()));
  constexpr std::array attributes{
      Attribute::operation_pointwise_x, Attribute::operation_pointwise_b,
      Attribute::operation_pointwise_t, Attribute::operation_pointwise_y};
  Descriptor operation(*api_, Kind::operation_pointwise);
  operation.set(Attribute::operation_pointwise_descriptor, settings_.back());
  for (std::size_t index = 0; index < attributes.size(); ++index) {
    if (x_b_t_y[index] == nullptr) continue;
    operation.set(attributes[index], tensors_[x_b_t_y[index]->index]);
  }
  operations_.push_back(std::move(operation.finalize()));
}

Graph::Node Graph::pointwise(PointwiseMode mode, Node x, const Extents& result) {
  const auto y = between(result, DataType::f32);
  add_pointwise(pointwise_setting(*api_, mode, DataType::f32), {&x, nullptr, nullptr, &y});
  return y;
}

Graph::Node Graph::pointwise(PointwiseMode mode, Node x, Node b, const Extents& result,
                             DataType type) {
  const auto y = between(result, type);
  pointwise_into(mode, x, b, y);
  return y;
}

void Graph::pointwise_into(PointwiseMode mode, Node x, Node b, Node y) {
  add_pointwise(pointwise_setting(*api_, mode, DataType::f32), {&x, &b, nullptr, &y});
}

void Graph::convert_into(Node x, Node y) {
  add_pointwise(pointwise_setting(*api_, PointwiseMode::identity, DataType::f32),
                {&x, nullptr, nullptr, &y});
}

Graph::Node Graph::index(Node x, std::int64_t dimension, const Extents& result) {
  const auto y = between(result, DataType::i32);
  auto setting = pointwise_setting(*api_, PointwiseMode::index, DataType::f32);
  setting.set(Attribute::pointwise_axis, dimension);
  add_pointwise(std::move(setting), {&x, nullptr, nullptr, &y});
  return y;
}

Graph::Node Graph::integers(PointwiseMode mode, Node x, Node b, const Extents& result) {
  const auto y = between(result, DataType::i32);
  add_pointwise(pointwise_setting(*api_, mode, DataType::i32), {&x, &b, nullptr, &y});
  return y;
}

Graph::Node Graph::is_greater_or_equal(Node x, Node b, const Extents& result) {
  const auto y = between(result, DataType::boolean);
  add_pointwise(pointwise_setting(*api_, PointwiseMode::is_greater_or_equal, DataType::boolean),
                {&x, &b, nullptr, &y});
  return y;
}

Graph::Node Graph::select(Node predicate, Node x, Node otherwise, const Extents& result) {
  const auto y = between(result, DataType::f32);
  add_pointwise(pointwise_setting(*api_, PointwiseMode::select, DataType::f32),
                {&x, &otherwise, &predicate, &y});
  return y;
}

Graph::Node Graph::reduce(ReductionMode mode, Node x, const Extents& result) {
  const auto y = between(result, DataType::f32);
  reduce_into(mode, x, y);
  return y;
}

void Graph::reduce_into(ReductionMode mode, Node x, Node y) {
  Descriptor setting(*api_, Kind::reduction);
  setting.set(Attribute::reduction_mode, mode)
      .set(Attribute::reduction_precision, DataType::f32)
      .finalize();
  settings_.push_back(std::move(setting));
  Descriptor operation(*api_, Kind::operation_reduction);
  operation.set(Attribute::operation_reduction_descriptor, settings_.back())
      .set(Attribute::operation_reduction_x, tensors_[x.index])
      .set(Attribute::operation_reduction_y, tensors_[y.index])
      .finalize();
  operations_.push_back(std::move(operation));
}

Graph::Node Graph::multiply(Node a, Node b, const Extents& result, DataType type) {
  const auto c = between(result, type);
  multiply_into(a, b, c);
  return c;
}

void Graph::multiply_into(Node a, Node b, Node c) {
  Descriptor setting(*api_, Kind::matmul);
  setting.set(Attribute::matmul_precision, DataType::f32).finalize();
  settings_.push_back(std::move(setting));
  Descriptor operation(*api_, Kind::operation_matmul);
  operation.set(Attribute::operation_matmul_descriptor, settings_.back())
      .set(Attribute::operation_matmul_a, tensors_[a.index])
      .set(Attribute::operation_matmul_b, tensors_[b.index])
      .set(Attribute::operation_matmul_c, tensors_[c.index])
      .finalize();
  operations_.push_back(std::move(operation));
}

Graph::Node Graph::reshape(Node x, const Extents& result, DataType type) {
  const auto y = between(result, type);
  Descriptor operation(*api_, Kind::operation_reshape);
  operation.set(Attribute::operation_reshape_x, tensors_[x.index])
      .set(Attribute::operation_reshape_y, tensors_[y.index])
      .finalize();
  operations_.push_back(std::move(operation));
  return y;
}

Descriptor Graph::finish(Handle handle) const {
  Descriptor graph(*api_, Kind::operation_graph);
  if (handle != nullptr) graph.set_handle(Attribute::graph_handle, handle);
  graph.set_all(Attribute::graph_operations, operations_).finalize();
  return graph;
}

}  // namespace trireme::device::cudnn
