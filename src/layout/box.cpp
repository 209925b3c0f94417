// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/box.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>

namespace trireme::layout {
namespace {

/// Elements between neighbours in each dimension of a row-major box.
Shape strides(const Shape& length) {
  Shape result(length.size(), 1);
  for (std::size_t d = length.size(); d-- > 1;) result[d - 1] = result[d] * length[d];
  return result;
}

void check_same_rank(const Box& a, const Box& b) {
  TRIREME_EXPECT(a.offset.size() == b.offset.size() && a.length.size() == b.length.size() &&
                     a.offset.size() == a.length.size(),
                 "boxes of one tensor have its number of dimensions");
}

/// Appends the boxes of elements [begin, end) of the sub-array that starts at `prefix` (one index
/// in each leading dimension) and spans the rest of `outer`.
void append_boxes(const Box& outer, Shape& prefix, std::int64_t begin, std::int64_t end,
                  std::vector<Box>& out) {
  if (begin == end) return;
  const std::size_t dimension = prefix.size();
  Box box{outer.offset, outer.length};
  for (std::size_t d = 0; d < dimension; ++d) {
    box.offset[d] += prefix[d];
    box.length[d] = 1;
  }
  if (dimension == outer.length.size()) {
    out.push_back(std::move(box));
    return;
  }
  std::int64_t row = 1;
  for (std::size_t d = dimension + 1; d < outer.length.size(); ++d) row *= outer.length[d];

  const std::int64_t first_whole = (begin + row - 1) / row;
  const std::int64_t end_whole = end / row;
  const auto append_partial = [&](std::int64_t index, std::int64_t from, std::int64_t to) {
    prefix.push_back(index);
    append_boxes(outer, prefix, from - index * row, to - index * row, out);
    prefix.pop_back();
  };
  if (end_whole < first_whole) {  // inside one row
    append_partial(end_whole, begin, end);
    return;
  }
  if (begin < first_whole * row) append_partial(first_whole - 1, begin, first_whole * row);
  if (first_whole < end_whole) {
    box.offset[dimension] += first_whole;
    box.length[dimension] = end_whole - first_whole;
    out.push_back(std::move(box));
  }
  if (end_whole * row < end) append_partial(end_whole, end_whole * row, end);
}

}  // namespace

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t length : shape) count *= length;
  return count;
}

std::int64_t element_count(const Box& box) {
  return element_count(box.length);
}

Box whole(const Shape& shape) {
  return {Shape(shape.size(), 0), shape};
}

std::optional<Box> intersect(const Box& a, const Box& b) {
  check_same_rank(a, b);
  const std::size_t rank = a.offset.size();
  for (std::size_t d = 0; d < rank; ++d) {  // before any allocation: most pairs do not intersect
    const std::int64_t begin = std::max(a.offset[d], b.offset[d]);
    const std::int64_t end = std::min(a.offset[d] + a.length[d], b.offset[d] + b.length[d]);
    if (begin >= end) return std::nullopt;
  }
  Box result{Shape(rank), Shape(rank)};
  for (std::size_t d = 0; d < rank; ++d) {
    result.offset[d] = std::max(a.offset[d], b.offset[d]);
    result.length[d] =
        std::min(a.offset[d] + a.length[d], b.offset[d] + b.length[d]) - result.offset[d];
  }
  return result;
}

std::string text(const Box& box) {
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < box.offset.size(); ++d) {
    parts.push_back(base::format("{}:{}", box.offset[d], box.offset[d] + box.length[d]));
  }
  return base::format("[{}]", base::join(parts, ", "));
}

std::vector<CopyRun> copy_runs(const Box& source, const Box& destination) {
  const std::optional<Box> common = intersect(source, destination);
  if (!common) return {};
  const std::size_t rank = common->length.size();

  // A run reaches over the trailing dimensions that are whole on both sides, and over the part of
  // the next dimension that is shared.
  std::int64_t run = 1;
  std::size_t outer_dimensions = rank;
  while (outer_dimensions > 0) {
    const std::size_t d = --outer_dimensions;
    run *= common->length[d];
    if (source.length[d] != common->length[d] || destination.length[d] != common->length[d]) break;
  }

  const Shape source_strides = strides(source.length);
  const Shape destination_strides = strides(destination.length);
  CopyRun next{0, 0, run};
  for (std::size_t d = 0; d < rank; ++d) {
    next.source += (common->offset[d] - source.offset[d]) * source_strides[d];
    next.destination += (common->offset[d] - destination.offset[d]) * destination_strides[d];
  }

  std::vector<CopyRun> runs;
  runs.reserve(static_cast<std::size_t>(element_count(*common) / run));
  Shape index(outer_dimensions, 0);
  while (true) {
    runs.push_back(next);
    std::size_t d = outer_dimensions;
    while (d > 0 && index[d - 1] + 1 == common->length[d - 1]) {
      --d;
      next.source -= index[d] * source_strides[d];
      next.destination -= index[d] * destination_strides[d];
      index[d] = 0;
    }
    if (d == 0) return runs;
    ++index[d - 1];
    next.source += source_strides[d - 1];
    next.destination += destination_strides[d - 1];
  }
}

std::vector<Box> boxes_of_flat_range(const Box& outer, std::int64_t begin, std::int64_t end) {
  TRIREME_EXPECT(0 <= begin && begin <= end && end <= element_count(outer),
                 "a range of elements of the outer box");
  std::vector<Box> boxes;
  Shape prefix;
  append_boxes(outer, prefix, begin, end, boxes);
  return boxes;
}

}  // namespace trireme::layout
