// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"

#include "ownership/packing/packing.hpp"
#include "ownership/packing/renewals.hpp"
#include "ownership/plans/alignment.hpp"
#include "ownership/plans/assignments.hpp"
#include "ownership/plans/shard_writer.hpp"

#include <algorithm>

namespace trireme::ownership {
namespace {

/// Whether a plan heeds the turns of renewals: that takes time, and changes neither its balance nor
/// its padding, by which it is chosen.
enum class Turns { ignored, heeded };

/// One plan with a given number of buckets, closed one after the other.
class EqualShards {
 public:
  EqualShards(std::span<const OwnedTensor> tensors, const PlanOptions& options, Turns turns)
      : tensors_(tensors),
        options_(options),
        turns_(turns),
        writer_(tensors, options),
        load_(static_cast<std::size_t>(options.data) * static_cast<std::size_t>(options.tensor),
              0.0) {}

  /// Buckets end at the first matrix at or behind equal parts of the elements.
  Plan plan(std::int64_t bucket_count) && {
    lone_bucket_ =
        bucket_count == 1 && std::none_of(tensors_.begin(), tensors_.end(),
                                          [](const auto& each) { return each.begins_bucket; });
    std::int64_t elements = 0;
    for (const auto& tensor : tensors_) elements += tensor.is_matrix() ? tensor.held_elements : 0;
    std::int64_t placed = 0;
    std::int64_t closed = 0;
    for (std::size_t at = 0; at < tensors_.size(); ++at) {
      const auto& tensor = tensors_[at];
      if (tensor.begins_bucket) close_bucket(ShardWriter::Bucket::last);
      if (tensor.is_matrix()) {
        matrices_.push_back(at);
        placed += tensor.held_elements;
      } else {
        writer_.add_filler(at);
      }
      const bool full = placed * bucket_count >= elements * (closed + 1);
      const bool inside = at + 1 < tensors_.size() && tensors_[at + 1].joined;
      if (full && closed + 1 < bucket_count && !matrices_.empty() && !inside) {
        close_bucket(ShardWriter::Bucket::inner);
        ++closed;
      }
    }
    close_bucket(ShardWriter::Bucket::last);
    return finished();
  }

 private:
  void close_bucket(ShardWriter::Bucket bucket) {
    std::int64_t elements = writer_.filler_elements();
    for (const auto at : matrices_) elements += held(at);
    const double fair = static_cast<double>(elements) / options_.data;
    const auto most_elements =
        aligned(static_cast<std::int64_t>(fair * (1 + options_.most_padding)), options_.alignment);
    own_whole(most_elements);
    writer_.write_bucket(bucket);
    matrices_.clear();
  }

  std::int64_t held(std::size_t at) const {
    return aligned(tensors_[at].held_elements, options_.alignment);
  }

  void own_whole(std::int64_t most_elements) {
    std::vector<Item> items;
    std::vector<GroupedItem> grouped;
    bool joined = false;
    for (const auto at : matrices_) {
      items.push_back({tensors_[at].flops, held(at)});
      joined = joined || tensors_[at].joined;
      const auto group = tensors_[at].joined ? grouped.back().group : grouped.size();
      grouped.push_back({.item = items.back(), .group = group, .bucket = 0});
      // Shards are not smaller than what they must hold.
      most_elements = std::max(most_elements, held(at));
    }
    const auto shards = static_cast<std::size_t>(options_.data);
    Bins bins{.load = std::move(load_),
              .bins_per_shard = options_.tensor,
              .elements = std::vector<std::int64_t>(shards, 0),
              .most_elements = std::vector<std::int64_t>(shards, most_elements)};
    std::vector<Placed> placed;
    if (joined) {
      placed = lone_bucket_ ? pack_all_groups(grouped, bins) : pack_groups(grouped, bins);
    } else {
      for (const auto bin : pack(items, bins)) placed.push_back({bin});
    }
    load_ = std::move(bins.load);
    if (turns_ == Turns::heeded) {
      std::vector<PlacedMatrix> in_bucket;
      for (const auto at : matrices_) in_bucket.push_back({&tensors_[at], 0});
      renewals_.spread(in_bucket, placed);
    }
    for (std::size_t index = 0; index < matrices_.size(); ++index) {
      const auto at = matrices_[index];
      const auto rank = static_cast<int>(placed[index].bin);
      writer_.put(rank / options_.tensor, at, 0, tensors_[at].held_elements, placed[index].end);
      owners_.push_back(
          {.tensor = at, .ranges = {{rank, 0, tensors_[at].shape.longer()}}, .square_ranks = {}});
    }
  }

  Plan finished() {
    Plan plan;
    plan.assignment = Assignment::padded;
    plan.matrices = std::move(owners_);
    plan.load = std::move(load_);
    finish(tensors_, options_, writer_, plan);
    return plan;
  }

  std::span<const OwnedTensor> tensors_;
  const PlanOptions& options_;
  Turns turns_;
  ShardWriter writer_;
  bool lone_bucket_ = false;  // of the plan: no other can make up for its balance
  std::vector<double> load_;
  RenewalSpreader renewals_;
  std::vector<std::size_t> matrices_;  // of the bucket that is open
  std::vector<MatrixOwner> owners_;
};

/// Largest load over the mean of longest processing time first over all matrices at once.
double balance_of_whole_matrices(std::span<const OwnedTensor> tensors, const PlanOptions& options) {
  const auto ranks =
      static_cast<std::size_t>(options.data) * static_cast<std::size_t>(options.tensor);
  Bins bins{.load = std::vector<double>(ranks, 0.0),
            .bins_per_shard = 1,
            .elements = std::vector<std::int64_t>(ranks, 0),
            .most_elements = std::vector<std::int64_t>(ranks, 0)};
  std::vector<Item> items;
  for (const auto& tensor : tensors) {
    if (tensor.is_matrix()) items.push_back({tensor.flops, 0});
  }
  pack(items, bins);
  Plan plan;
  plan.load = std::move(bins.load);
  return plan.max_over_mean();
}

/// A rank has room for a whole matrix in every bucket: smaller buckets would be padding for the
/// most part.
std::int64_t most_buckets(std::span<const OwnedTensor> tensors, const PlanOptions& options) {
  std::int64_t elements = 0;
  std::int64_t largest = 0;
  for (const auto& tensor : tensors) {
    if (!tensor.is_matrix()) continue;
    elements += tensor.held_elements;
    largest = std::max(largest, tensor.held_elements);
  }
  return std::max<std::int64_t>(
      1, elements / std::max(options.bucket_elements, largest * options.data));
}

}  // namespace

Plan plan_padded(std::span<const OwnedTensor> tensors, const PlanOptions& options) {
  const auto plan_of = [&](std::int64_t count) {
    return EqualShards(tensors, options, Turns::ignored).plan(count);
  };
  const auto heeding_turns = [&](Plan plan, std::int64_t count) {
    const bool any = std::any_of(tensors.begin(), tensors.end(),
                                 [](const auto& each) { return !each.renewals.empty(); });
    return any ? EqualShards(tensors, options, Turns::heeded).plan(count) : plan;
  };
  auto lone = plan_of(1);
  const double most_over_mean =
      std::max(lone.max_over_mean(), balance_of_whole_matrices(tensors, options)) * (1 + 1e-9);
  // Buckets grow until neither padding nor balance is worse for there being several.
  for (auto count = most_buckets(tensors, options); count > 1;
       count -= std::max<std::int64_t>(1, count / 8)) {
    auto plan = plan_of(count);
    if (plan.padding() <= options.most_padding && plan.max_over_mean() <= most_over_mean) {
      return heeding_turns(std::move(plan), count);
    }
  }
  return heeding_turns(std::move(lone), 1);
}

}  // namespace trireme::ownership
