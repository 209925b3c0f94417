// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"

#include "layout/ownership/alignment.hpp"
#include "layout/ownership/assignments.hpp"
#include "layout/ownership/packing.hpp"
#include "layout/ownership/shard_writer.hpp"
#include "layout/ownership/sharing.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::layout {
namespace {

/// Balance of shared plans with more than one bucket: smaller buckets that miss it are joined.
constexpr double most_over_mean_shared = 1.05;

/// One plan with a given number of buckets, closed one after the other.
class EqualShards {
 public:
  EqualShards(std::span<const OwnedTensor> tensors, const OwnershipOptions& options,
              Sharing sharing)
      : tensors_(tensors),
        options_(options),
        sharing_(sharing),
        writer_(tensors, options),
        load_(static_cast<std::size_t>(options.data) * static_cast<std::size_t>(options.tensor),
              0.0) {}

  /// Buckets end at the first matrix at or behind equal parts of the elements.
  OwnershipPlan plan(std::int64_t bucket_count) && {
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
    if (sharing_ == Sharing::on) {
      share(most_elements);
    } else {
      own_whole(most_elements);
    }
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
              .ranks = std::vector<int>(shards * static_cast<std::size_t>(options_.tensor), 1),
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
    for (std::size_t index = 0; index < matrices_.size(); ++index) {
      const auto at = matrices_[index];
      const auto rank = static_cast<int>(placed[index].bin);
      writer_.put(rank / options_.tensor, at, 0, tensors_[at].held_elements, placed[index].end);
      owners_.push_back(
          {.tensor = at, .ranges = {{rank, 0, tensors_[at].shape.longer()}}, .square_ranks = {}});
    }
  }

  int ranks_per_group() const {
    return options_.tensor > 1 ? options_.tensor : std::min(options_.ranks_per_node, options_.data);
  }

  /// Matrices to groups, whole; then each group divides its own.
  void share(std::int64_t most_elements) {
    const int ranks = options_.data * options_.tensor;
    Bins groups{};
    for (int first = 0; first < ranks; first += ranks_per_group()) {
      const int size = std::min(ranks_per_group(), ranks - first);
      const auto begin = load_.begin() + first;
      groups.load.push_back(std::accumulate(begin, begin + size, 0.0));
      groups.ranks.push_back(size);
      groups.most_elements.push_back(most_elements * (options_.tensor > 1 ? 1 : size));
    }
    groups.elements.assign(groups.load.size(), 0);
    std::vector<Item> items;
    for (const auto at : matrices_) items.push_back({tensors_[at].flops, held(at)});
    const auto group_of = pack(items, groups);
    for (std::size_t group = 0; group < groups.load.size(); ++group) {
      std::vector<std::size_t> own;
      for (std::size_t index = 0; index < matrices_.size(); ++index) {
        if (group_of[index] == group) own.push_back(matrices_[index]);
      }
      if (!own.empty()) divide(static_cast<int>(group), own, most_elements);
    }
  }

  void divide(int number, const std::vector<std::size_t>& matrices, std::int64_t most_elements) {
    const int first = number * ranks_per_group();
    const int last = std::min(first + ranks_per_group(), options_.data * options_.tensor);
    SharingGroup group{
        .first_rank = first,
        .load = {load_.begin() + first, load_.begin() + last},
        .elements = std::vector<std::int64_t>(static_cast<std::size_t>(last - first)),
        .most_elements = options_.tensor > 1 ? INT64_MAX / 2 : most_elements};
    auto owners = share_in_group(tensors_, matrices, options_, group);
    std::copy(group.load.begin(), group.load.end(), load_.begin() + first);
    for (auto& owner : owners) {
      const auto& tensor = tensors_[owner.tensor];
      if (options_.tensor > 1) {
        writer_.put(number, owner.tensor, 0, tensor.held_elements);
      } else {
        for (const auto& range : owner.ranges) {
          const auto length = tensor.shape.shorter();
          writer_.put(range.rank, owner.tensor, range.begin * length, range.end * length);
        }
      }
      owners_.push_back(std::move(owner));
    }
  }

  OwnershipPlan finished() {
    OwnershipPlan plan;
    plan.assignment = sharing_ == Sharing::on ? Assignment::shared : Assignment::padded;
    plan.matrices = std::move(owners_);
    plan.load = std::move(load_);
    finish(tensors_, options_, writer_, plan);
    return plan;
  }

  std::span<const OwnedTensor> tensors_;
  const OwnershipOptions& options_;
  Sharing sharing_;
  ShardWriter writer_;
  bool lone_bucket_ = false;  // of the plan: no other can make up for its balance
  std::vector<double> load_;
  std::vector<std::size_t> matrices_;  // of the bucket that is open
  std::vector<MatrixOwner> owners_;
};

/// Largest load over the mean of longest processing time first over all matrices at once.
double balance_of_whole_matrices(std::span<const OwnedTensor> tensors,
                                 const OwnershipOptions& options) {
  const auto ranks =
      static_cast<std::size_t>(options.data) * static_cast<std::size_t>(options.tensor);
  Bins bins{.load = std::vector<double>(ranks, 0.0),
            .ranks = std::vector<int>(ranks, 1),
            .bins_per_shard = 1,
            .elements = std::vector<std::int64_t>(ranks, 0),
            .most_elements = std::vector<std::int64_t>(ranks, 0)};
  std::vector<Item> items;
  for (const auto& tensor : tensors) {
    if (tensor.is_matrix()) items.push_back({tensor.flops, 0});
  }
  pack(items, bins);
  OwnershipPlan plan;
  plan.load = std::move(bins.load);
  return plan.max_over_mean();
}

/// Who takes a matrix whole, a rank or a node, has room for it in every bucket: smaller buckets
/// would be padding for the most part.
std::int64_t most_buckets(std::span<const OwnedTensor> tensors, const OwnershipOptions& options,
                          Sharing sharing) {
  std::int64_t elements = 0;
  std::int64_t largest = 0;
  for (const auto& tensor : tensors) {
    if (!tensor.is_matrix()) continue;
    elements += tensor.held_elements;
    largest = std::max(largest, tensor.held_elements);
  }
  const int owners = sharing == Sharing::on && options.tensor == 1
                         ? (options.data + options.ranks_per_node - 1) / options.ranks_per_node
                         : options.data;
  return std::max<std::int64_t>(1, elements / std::max(options.bucket_elements, largest * owners));
}

}  // namespace

OwnershipPlan plan_equal_shards(std::span<const OwnedTensor> tensors,
                                const OwnershipOptions& options, Sharing sharing) {
  auto lone = EqualShards(tensors, options, sharing).plan(1);
  const double most_over_mean =
      sharing == Sharing::on
          ? most_over_mean_shared
          : std::max(lone.max_over_mean(), balance_of_whole_matrices(tensors, options)) *
                (1 + 1e-9);
  // Buckets grow until neither padding nor balance is worse for there being several.
  for (auto count = most_buckets(tensors, options, sharing); count > 1;
       count -= std::max<std::int64_t>(1, count / 8)) {
    auto plan = EqualShards(tensors, options, sharing).plan(count);
    if (plan.padding() <= options.most_padding && plan.max_over_mean() <= most_over_mean) {
      return plan;
    }
  }
  return lone;
}

}  // namespace trireme::layout
