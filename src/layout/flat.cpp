// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/flat.hpp"

#include "trireme/base/contract.hpp"

#include <algorithm>

namespace trireme::layout {
namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

FlatRange FlatLayout::shard_of_bucket(std::size_t bucket, int shard) const {
  TRIREME_EXPECT(bucket < buckets.size() && shard >= 0 && shard < shards,
                 "a bucket and a shard of this layout");
  if (const auto& own = cuts_of_bucket(bucket); !own.empty()) {
    const auto at = static_cast<std::size_t>(shard);
    return {buckets[bucket].begin + own[at], buckets[bucket].begin + own[at + 1]};
  }
  const std::int64_t length = buckets[bucket].size() / shards;
  const std::int64_t begin = buckets[bucket].begin + length * shard;
  return {begin, begin + length};
}

const std::vector<std::int64_t>& FlatLayout::cuts_of_bucket(std::size_t bucket) const {
  static const std::vector<std::int64_t> equal;
  return bucket < cuts.size() ? cuts[bucket] : equal;
}

FlatRange FlatLayout::buckets_of_tensor(std::size_t tensor) const {
  TRIREME_EXPECT(tensor < tensors.size(), "a tensor of this layout");
  const FlatRange range = tensors[tensor];
  const auto first = std::partition_point(buckets.begin(), buckets.end(),
                                          [&](const FlatRange& b) { return b.end <= range.begin; });
  const auto last = std::partition_point(first, buckets.end(),
                                         [&](const FlatRange& b) { return b.begin < range.end; });
  const std::int64_t begin = first - buckets.begin();
  return {begin, range.size() == 0 ? begin : last - buckets.begin()};
}

FlatLayout flat_layout(std::span<const std::int64_t> tensor_sizes, int shards,
                       std::int64_t bucket_elements, std::int64_t alignment) {
  TRIREME_EXPECT(shards > 0 && bucket_elements > 0 && alignment > 0,
                 "shards, bucket_elements and alignment are positive");
  FlatLayout layout;
  layout.shards = shards;
  layout.alignment = alignment;
  layout.tensors.reserve(tensor_sizes.size());
  std::int64_t bucket_begin = 0;
  std::int64_t end = 0;
  const auto close_bucket = [&] {
    end = bucket_begin + rounded_up(end - bucket_begin, shards * alignment);
    if (end > bucket_begin) layout.buckets.push_back({bucket_begin, end});
    bucket_begin = end;
  };
  for (const std::int64_t size : tensor_sizes) {
    TRIREME_EXPECT(size >= 0, "a tensor's size is not negative");
    const std::int64_t begin = rounded_up(end, alignment);
    end = begin + size;
    layout.tensors.push_back({begin, end});
    if (end - bucket_begin >= bucket_elements) close_bucket();
  }
  close_bucket();
  layout.size = end;
  return layout;
}

std::vector<FlatBox> pieces_of_shard(const FlatLayout& layout, std::span<const Box> boxes,
                                     int shard) {
  TRIREME_EXPECT(boxes.size() == layout.tensors.size(), "one box for each tensor of the layout");
  std::vector<FlatBox> pieces;
  std::size_t tensor = 0;
  for (std::size_t bucket = 0; bucket < layout.buckets.size(); ++bucket) {
    const FlatRange part = layout.shard_of_bucket(bucket, shard);
    while (tensor < boxes.size() && layout.tensors[tensor].end <= part.begin) ++tensor;
    for (std::size_t at = tensor; at < boxes.size() && layout.tensors[at].begin < part.end; ++at) {
      const FlatRange range = layout.tensors[at];
      TRIREME_EXPECT(element_count(boxes[at]) == range.size(), "a box is as large as its tensor");
      std::int64_t begin = std::max(range.begin, part.begin);
      const std::int64_t end = std::min(range.end, part.end);
      for (Box& box : boxes_of_flat_range(boxes[at], begin - range.begin, end - range.begin)) {
        const std::int64_t count = element_count(box);
        pieces.push_back({at, std::move(box), begin});
        begin += count;
      }
    }
  }
  return pieces;
}

}  // namespace trireme::layout
