// SPDX-License-Identifier: Apache-2.0
#include "ownership/plans/shard_writer.hpp"

#include "ownership/plans/alignment.hpp"

#include <algorithm>

namespace trireme::ownership {

ShardWriter::ShardWriter(std::span<const OwnedTensor> tensors, const PlanOptions& options)
    : tensors_(tensors),
      alignment_(options.alignment),
      shards_(static_cast<std::size_t>(options.data)) {}

void ShardWriter::add_filler(std::size_t tensor) {
  const auto elements = tensors_[tensor].held_elements;
  if (elements == 0) return;
  filler_.push_back({tensor, 0, elements, 0});
  filler_elements_ += aligned(elements, alignment_);
}

void ShardWriter::put(int shard, std::size_t tensor, std::int64_t begin, std::int64_t end,
                      Placed::End at) {
  auto& [front, middle, back, length] = shards_[static_cast<std::size_t>(shard)];
  auto& pieces = at == Placed::End::front ? front : at == Placed::End::back ? back : middle;
  pieces.push_back({tensor, begin, end, 0});
  length += aligned(end - begin, alignment_);
}

void ShardWriter::write_bucket(Bucket bucket) {
  const auto count = static_cast<std::int64_t>(shards_.size());
  std::int64_t longest = 0;
  std::int64_t all = 0;
  for (const auto& shard : shards_) {
    longest = std::max(longest, shard.length);
    all += shard.length;
  }
  if (bucket == Bucket::last) {
    all += filler_elements_;
    longest = std::max(longest, aligned((all + count - 1) / count, alignment_));
  }
  if (longest == 0) return;
  PlannedBucket written;
  written.flat.begin = buckets_.empty() ? 0 : buckets_.back().flat.end;
  auto end = written.flat.begin;
  for (auto& shard : shards_) {
    const auto begin = end;
    end += bucket == Bucket::ragged ? shard.length : longest;
    written.cuts.push_back(begin);
    write(shard, begin, end);
    shard = {};
  }
  written.cuts.push_back(end);
  written.flat.end = end;
  buckets_.push_back(std::move(written));
}

void ShardWriter::write(const Shard& shard, std::int64_t begin, std::int64_t end) {
  const auto write_pieces = [&](const std::vector<OwnedPiece>& pieces, std::int64_t at) {
    for (auto piece : pieces) {
      piece.flat_begin = at;
      at += aligned(piece.end - piece.begin, alignment_);
      pieces_.push_back(piece);
    }
    return at;
  };
  auto back_begin = end;
  for (const auto& piece : shard.back) back_begin -= aligned(piece.end - piece.begin, alignment_);
  const auto at = write_pieces(shard.middle, write_pieces(shard.front, begin));
  fill(at, back_begin);
  write_pieces(shard.back, back_begin);
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

}  // namespace trireme::ownership
