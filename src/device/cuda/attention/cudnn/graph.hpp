// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/attention/cudnn/descriptor.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

namespace trireme::device::cudnn {

/// Lengths and strides of a tensor of four dimensions, in elements.
struct Extents {
  std::array<std::int64_t, 4> dims{};
  std::array<std::int64_t, 4> strides{};

  auto operator<=>(const Extents&) const = default;
};
/// Extents of a contiguous row-major tensor.
Extents dense(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d);
/// Extents with the last two dimensions exchanged: the transpose of every matrix, in place.
Extents transposed(const Extents& matrices);

/// Operations on tensors in the form that the library needs. Values between operations are
/// "virtual": an engine keeps them in registers.
class Graph {
 public:
  /// Index into the list of tensors.
  struct Node {
    std::size_t index = 0;
  };

  explicit Graph(const Api& api) : api_(&api) {}

  /// A tensor in memory, found by `id` when the graph runs.
  Node tensor(std::int64_t id, const Extents& extents, DataType type);
  /// One float in host memory, found by `id`.
  Node scalar(std::int64_t id);
  /// One 32-bit integer in host memory, found by `id`.
  Node integer(std::int64_t id);

  Node pointwise(PointwiseMode mode, Node x, const Extents& result);
  Node pointwise(PointwiseMode mode, Node x, Node b, const Extents& result,
                 DataType type = DataType::f32);
  void pointwise_into(PointwiseMode mode, Node x, Node b, Node y);
  /// y = x in y's type.
  void convert_into(Node x, Node y);
  /// Index of each element along a dimension.
  Node index(Node x, std::int64_t dimension, const Extents& result);
  /// Pointwise operation on integers.
  Node integers(PointwiseMode mode, Node x, Node b, const Extents& result);
  Node is_greater_or_equal(Node x, Node b, const Extents& result);
  /// predicate ? x : otherwise.
  Node select(Node predicate, Node x, Node otherwise, const Extents& result);
  /// Reduction over every dimension in which the result is shorter; neighbours are summed up.
  Node reduce(ReductionMode mode, Node x, const Extents& result);
  void reduce_into(ReductionMode mode, Node x, Node y);
  Node multiply(Node a, Node b, const Extents& result, DataType type = DataType::f32);
  void multiply_into(Node a, Node b, Node c);
  /// Reshape: the same memory seen as other extents.
  Node reshape(Node x, const Extents& result, DataType type);

  /// Finalized descriptor. The library does not document whether it keeps what it was made of: the
  /// graph outlives it.
  Descriptor finish(Handle handle) const;

 private:
  Node add(std::int64_t id, const Extents& extents, DataType type, bool is_virtual,
           bool is_by_value);
  Node between(const Extents& extents, DataType type);
  void add_pointwise(Descriptor setting, std::array<const Node*, 4> x_b_t_y);

  const Api* api_;
  std::vector<Descriptor> tensors_;
  std::vector<Descriptor> settings_;
  std::vector<Descriptor> operations_;
  /// Ids of tensors between operations; those in memory are numbered by the caller.
  std::int64_t next_id_ = 1000;
};

}  // namespace trireme::device::cudnn
