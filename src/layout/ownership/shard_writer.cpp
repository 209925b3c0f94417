// SPDX-License-Identifier: Apache-2.0
#include "layout/ownership/shard_writer.hpp"

#include "layout/ownership/alignment.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::layout {

ShardWriter::ShardWriter(std::span<const OwnedTensor> tensors, const OwnershipOptions& options)
    : tensors_(tensors),
      alignment_(options.alignment),
      shards_(static_cast<std::size_t>(options.data)),
      lengths_(static_cast<std::size_t>(options.data), 0) {}

void ShardWriter::add_filler(std::size_t tensor) {
  const auto elements = tensors_[tensor].held_elements;
  if (elements == 0) return;
  filler_.push_back({tensor, 0, elements, 0});
  filler_elements_ += aligned(elements, alignment_);
}

void ShardWriter::put(int shard, std::size_t tensor, std::int64_t begin, std::int64_t end) {
  const auto at = static_cast<std::size_t>(shard);
  shards_[at].push_back({tensor, begin, end, 0});
  lengths_[at] += aligned(end - begin, alignment_);
}

void ShardWriter::write_bucket(Bucket bucket) {
  const auto count = static_cast<std::int64_t>(shards_.size());
  std::int64_t length = *std::max_element(lengths_.begin(), lengths_.end());
  if (bucket == Bucket::last) {
    const auto all =
        std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0}) + filler_elements_;
    length = std::max(length, aligned((all + count - 1) / count, alignment_));
  }
  if (length == 0) return;
  OwnershipBucket written;
  std::int64_t begin = buckets_.empty() ? 0 : buckets_.back().flat.end;
  written.flat = {begin, begin + count * length};
  for (std::size_t shard = 0; shard < shards_.size(); ++shard, begin += length) {
    written.cuts.push_back(begin);
    auto at = begin;
    for (auto piece : shards_[shard]) {
      piece.flat_begin = at;
      at += aligned(piece.end - piece.begin, alignment_);
      pieces_.push_back(piece);
    }
    fill(at, begin + length);
    shards_[shard].clear();
    lengths_[shard] = 0;
  }
  written.cuts.push_back(begin);
  buckets_.push_back(std::move(written));
}

/// Writes filler to [begin, end) of the buffer.
void ShardWriter::fill(std::int64_t begin, std::int64_t end) {
  while (begin < end && !filler_.empty()) {
    auto& next = filler_.front();
    const auto taken = std::min(next.end - next.begin, end - begin);
    pieces_.push_back({next.tensor, next.begin, next.begin + taken, begin});
    filler_elements_ -= aligned(taken, alignment_);
    begin += aligned(taken, alignment_);
    next.begin += taken;
    if (next.begin == next.end) filler_.pop_front();
  }
}

}  // namespace trireme::layout
