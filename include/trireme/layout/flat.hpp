// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/box.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace trireme::layout {

/// A contiguous range of elements of a flat buffer.
struct FlatRange {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t size() const { return end - begin; }
  bool operator==(const FlatRange&) const = default;
};

/// Order of a rank's parameters in one flat buffer, and the division of that buffer into buckets
/// (units of gradient reduction) and of buckets into shards (units of optimizer ownership). The
/// same for every ZeRO level: levels differ in which ranks keep which shards, never in arithmetic.
struct FlatLayout {
  /// Range of each tensor, in the order given. Tensors begin at multiples of `alignment`.
  std::vector<FlatRange> tensors;
  /// Buckets cover the buffer without gaps, in the order of the buffer; the length of a bucket of
  /// equal shards is a multiple of shards * alignment.
  std::vector<FlatRange> buckets;
  /// [bucket]: begins of its shards and its end, counted from its own begin, where the shards have
  /// different lengths; empty where they are equal. Shorter than `buckets` if all others are equal.
  std::vector<std::vector<std::int64_t>> cuts;
  int shards = 1;
  std::int64_t alignment = 1;
  /// Elements, padding included.
  std::int64_t size = 0;

  /// Part `shard` of bucket `bucket`.
  FlatRange shard_of_bucket(std::size_t bucket, int shard) const;
  /// Empty for a bucket of equal shards.
  const std::vector<std::int64_t>& cuts_of_bucket(std::size_t bucket) const;
  /// Index of the first bucket that holds any element of the tensor, and one past the last.
  FlatRange buckets_of_tensor(std::size_t tensor) const;
};

/// Closes a bucket at the first tensor boundary at or after `bucket_elements`; a tensor larger
/// than a bucket makes a larger bucket. Padding goes to the end of buckets.
FlatLayout flat_layout(std::span<const std::int64_t> tensor_sizes, int shards,
                       std::int64_t bucket_elements, std::int64_t alignment);

/// Box of a tensor whose elements are one run of the flat buffer.
struct FlatBox {
  std::size_t tensor = 0;       ///< index into FlatLayout::tensors
  Box box;                      ///< in elements of the whole tensor
  std::int64_t flat_begin = 0;  ///< position of the box's first element in the flat buffer
};
/// Content of shard number `shard` of all buckets, as boxes in the order of the buffer; padding is
/// left out. boxes[t] is the part of tensor t that lies in this buffer, such as shard_box(...).
std::vector<FlatBox> pieces_of_shard(const FlatLayout& layout, std::span<const Box> boxes,
                                     int shard);

}  // namespace trireme::layout
