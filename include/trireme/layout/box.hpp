#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/layout/mesh.hpp"

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
/// Empty when the boxes do not meet.
std::optional<Box> intersect(const Box& a, const Box& b);
/// "[0:128, 64:96]".
std::string text(const Box& box);

/// A run of elements that is contiguous on both sides of a copy.
struct CopyRun {
  std::int64_t source;       ///< element index inside the source box, row-major
  std::int64_t destination;  ///< element index inside the destination box, row-major
  std::int64_t count;
};
/// The runs that copy what two boxes of one tensor share; empty when they do not meet.
std::vector<CopyRun> copy_runs(const Box& source, const Box& destination);

/// The fewest boxes whose union, in row-major order inside `outer`, is elements [begin, end) of
/// that outer box: how a slice of a flat buffer is named without being flat.
std::vector<Box> boxes_of_flat_range(const Box& outer, std::int64_t begin, std::int64_t end);

/// How one axis cuts one dimension of a tensor.
struct Cut {
  Axis axis;
  int dimension;
  /// Part boundaries fall on multiples of this many elements (a head, say).
  std::int64_t unit = 1;
  /// At most so many different parts; with more ranks on the axis, neighbours hold replicas
  /// (key and value heads when there are fewer of them than tensor-parallel ranks).
  std::int64_t max_parts = INT64_MAX;
};

/// A logical tensor: what it is called, how large it is, and what cuts it. Axes without a cut
/// replicate it.
struct TensorSpec {
  std::string name;
  Shape shape;
  std::vector<Cut> cuts;
};

/// The part that the rank holds. Parts differ by at most one unit when a dimension does not
/// divide evenly: part i of n is units [i*u/n, (i+1)*u/n).
Box shard_box(const TensorSpec& spec, const Mesh& mesh, base::Rank rank);
/// How many ranks along `axis`, the rank among them, hold the same box of this tensor.
int replica_count(const TensorSpec& spec, const Mesh& mesh, Axis axis);

}  // namespace trireme::layout
