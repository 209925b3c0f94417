// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/mesh.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trireme::layout {

using Shape = std::vector<std::int64_t>;

std::int64_t element_count(const Shape& shape);

/// A part of a tensor: offset and length in every dimension, in elements of the whole tensor.
struct Box {
  Shape offset;
  Shape length;
  bool operator==(const Box&) const = default;
};

/// The box that is the whole tensor.
Box whole(const Shape& shape);
std::int64_t element_count(const Box& box);
/// Common part of two boxes; none when they do not meet.
std::optional<Box> intersect(const Box& a, const Box& b);
/// "[0:128, 64:96]".
std::string text(const Box& box);

/// A run of elements that is contiguous on both sides of a copy.
struct CopyRun {
  std::int64_t source;       ///< element index inside the source box, row-major
  std::int64_t destination;  ///< element index inside the destination box, row-major
  std::int64_t count;
};
/// Runs that copy the common part of two boxes of one tensor, each as long as possible, in
/// row-major order; empty when the boxes do not meet. Not called in src yet, but needed by code
/// that is to come: not dead.
std::vector<CopyRun> copy_runs(const Box& source, const Box& destination);

/// Smallest list of boxes that, one after the other, each in row-major order, are elements [begin,
/// end) of the outer box: a slice of a flat buffer as boxes. Offsets count in the whole tensor,
/// like those of `outer`.
std::vector<Box> boxes_of_flat_range(const Box& outer, std::int64_t begin, std::int64_t end);

/// Division of one dimension of a tensor by one axis.
struct Cut {
  Axis axis = Axis::tensor;
  int dimension = 0;
  /// Part boundaries are multiples of this many elements (a head, say).
  std::int64_t unit = 1;
  /// Largest number of different parts; with more ranks on the axis, neighbours hold replicas (key
  /// and value heads when there are fewer of them than tensor-parallel ranks).
  std::int64_t max_parts = INT64_MAX;
};

/// Logical tensor: its name, its shape, and the axes that cut it. Axes without a cut replicate it.
struct TensorSpec {
  std::string name;
  Shape shape;
  std::vector<Cut> cuts;
};

/// Part of a cut dimension that the rank holds. With n = min(degree, max_parts) parts, the rank at
/// coordinate c of the axis holds part floor(c * n / degree): when there are fewer parts than
/// ranks, neighbours hold replicas of one part.
std::int64_t part_index(const Cut& cut, const Mesh& mesh, base::Rank rank);

/// Part of the tensor that the rank holds. A dimension of u units (the last may be short) is cut so
/// that part i of n is units [floor(i * u / n), floor((i + 1) * u / n)): parts differ by at most
/// one unit, and some are empty when n > u. Cuts of one dimension by several axes nest in the order
/// of the list. The pipeline axis cuts nothing here: assign_layers gives the stage of a tensor.
Box shard_box(const TensorSpec& spec, const Mesh& mesh, base::Rank rank);
/// Number of ranks along `axis`, `rank` among them, that hold the same part of this tensor.
int replica_count(const TensorSpec& spec, const Mesh& mesh, Axis axis, base::Rank rank);
/// Number of replicas where it does not depend on the rank: max_parts must divide the degree or
/// exceed it.
int replica_count(const TensorSpec& spec, const Mesh& mesh, Axis axis);

}  // namespace trireme::layout
