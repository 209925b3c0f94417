// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/ownership/plan.hpp"

#include "ownership/packing/packing.hpp"

#include <deque>
#include <span>
#include <vector>

namespace trireme::ownership {

/// Writer of the flat buffer, bucket by bucket. Tensors that may be cut anywhere are filler: they
/// take the room that matrices leave in equal shards of this or a later bucket.
class ShardWriter {
 public:
  ShardWriter(std::span<const OwnedTensor> tensors, const PlanOptions& options);

  void add_filler(std::size_t tensor);
  /// Filler that no bucket holds yet, with its alignment.
  std::int64_t filler_elements() const { return filler_elements_; }

  /// Places elements [begin, end) of a tensor in a shard of the open bucket. What lies at an end
  /// follows, or is followed by, what lies in the next shard, without a gap.
  void put(int shard, std::size_t tensor, std::int64_t begin, std::int64_t end,
           Placed::End at = Placed::End::any);

  enum class Bucket {
    inner,  ///< equal shards; takes as much filler as fits beside its matrices
    last,   ///< equal shards; takes all filler that there is so far
    ragged  ///< shards as long as their matrices, without filler
  };
  void write_bucket(Bucket bucket);

  std::vector<PlannedBucket> take_buckets() { return std::move(buckets_); }
  std::vector<OwnedPiece> take_pieces() { return std::move(pieces_); }

 private:
  /// Pieces of a shard of the open bucket, and their elements with alignment.
  struct Shard {
    std::vector<OwnedPiece> front;
    std::vector<OwnedPiece> middle;
    std::vector<OwnedPiece> back;
    std::int64_t length = 0;
  };
  void write(const Shard& shard, std::int64_t begin, std::int64_t end);
  void fill(std::int64_t begin, std::int64_t end);

  std::span<const OwnedTensor> tensors_;
  std::int64_t alignment_;
  std::vector<Shard> shards_;
  std::deque<OwnedPiece> filler_;
  std::int64_t filler_elements_ = 0;
  std::vector<PlannedBucket> buckets_;
  std::vector<OwnedPiece> pieces_;
};

}  // namespace trireme::ownership
