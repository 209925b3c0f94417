// SPDX-License-Identifier: Apache-2.0
#include "ownership/packing/packing.hpp"
#include "ownership/packing/renewals.hpp"
#include "ownership/plans/alignment.hpp"
#include "ownership/plans/assignments.hpp"
#include "ownership/plans/ragged_buckets.hpp"
#include "ownership/plans/shard_writer.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::ownership {
namespace {

/// State is as long as its matrices: a rank has at most so many elements of them over the mean,
/// unless one matrix has more.
constexpr double most_elements_over_mean = 1.25;

/// Owners of all matrices, in the order of the tensors: Placed::bin is a rank.
class Owners {
 public:
  Owners(std::span<const OwnedTensor> tensors, const std::vector<RaggedBucket>& buckets,
         const PlanOptions& options)
      : options_(options) {
    for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
      if (buckets[bucket].kind != ShardWriter::Bucket::ragged) continue;
      for (const auto at : buckets[bucket].tensors) {
        const Item item{tensors[at].flops, aligned(tensors[at].held_elements, options.alignment)};
        const auto group = tensors[at].joined ? items_.back().group : items_.size();
        items_.push_back({.item = item, .group = group, .bucket = bucket});
        matrices_.push_back({&tensors[at], bucket});
        has_groups_ = has_groups_ || tensors[at].joined;
      }
    }
  }

  /// By work, all buckets at once.
  std::vector<Placed> by_work() const {
    auto placed = packed();
    RenewalSpreader().spread(matrices_, placed);
    return placed;
  }

  /// By cuts (Wang et al. 2026): a bucket's matrices stay in the order of backward. Each shard but
  /// the last ends at the border of matrices nearest to its share of the bucket's work, (1 - alpha)
  /// / R + alpha * deficit / sum of deficits.
  std::vector<Placed> by_cuts() const {
    const auto shards = static_cast<std::size_t>(options_.data);
    std::vector<double> load(shards, 0.0);
    std::vector<Placed> placed;
    while (placed.size() < items_.size()) {
      const auto begin = placed.size();
      auto end = begin;
      double work = 0;
      for (; end < items_.size() && items_[end].bucket == items_[begin].bucket; ++end) {
        work += items_[end].item.load;
      }
      const auto share = shares(load);
      double before = 0;  // work of the matrices before the next
      double wanted = 0;  // work of all shards so far
      for (std::size_t shard = 0; shard < shards; ++shard) {
        wanted += share[shard] * work;
        const bool last = shard + 1 == shards;
        while (placed.size() < end) {
          const double next = items_[placed.size()].item.load;
          if (!last && before + next / 2 > wanted) break;
          before += next;
          load[shard] += next;
          placed.push_back({shard});
        }
      }
    }
    return with_tensor_ranks(std::move(placed));
  }

 private:
  /// Matrices are packed one by one if groups can be ordered then, and by groups if not, or where
  /// that is better.
  std::vector<Placed> packed() const {
    std::vector<Item> items;
    for (const auto& each : items_) items.push_back(each.item);
    auto bins = empty_bins();
    const auto alone = pack(items, bins);
    if (!has_groups_) {
      std::vector<Placed> placed;
      for (const auto bin : alone) placed.push_back({bin});
      return placed;
    }
    auto ordered = order_groups(items_, alone);
    const double most = largest(bins.load);
    if (ordered && most <= good_over_least * least_load(items, bins.load.size())) {
      return *std::move(ordered);
    }
    bins = empty_bins();
    auto in_groups = pack_all_groups(items_, bins);
    if (ordered && most <= largest(bins.load)) return *std::move(ordered);
    return in_groups;
  }

  static double largest(const std::vector<double>& load) {
    return *std::max_element(load.begin(), load.end());
  }

  /// No largest load is below this.
  static double least_load(const std::vector<Item>& items, std::size_t ranks) {
    double sum = 0;
    double most = 0;
    for (const auto& item : items) {
      sum += item.load;
      most = std::max(most, item.load);
    }
    return std::max(most, sum / static_cast<double>(ranks));
  }

  Bins empty_bins() const {
    const auto shards = static_cast<std::size_t>(options_.data);
    const auto ranks = shards * static_cast<std::size_t>(options_.tensor);
    double elements = 0;
    for (const auto& each : items_) elements += static_cast<double>(each.item.elements);
    const auto most = static_cast<std::int64_t>(elements / options_.data * most_elements_over_mean);
    return {.load = std::vector<double>(ranks, 0.0),
            .bins_per_shard = options_.tensor,
            .elements = std::vector<std::int64_t>(shards, 0),
            .most_elements = std::vector<std::int64_t>(shards, most)};
  }

  std::vector<double> shares(const std::vector<double>& load) const {
    double fair = 0;
    for (const auto& each : items_) fair += each.item.load / options_.data;
    std::vector<double> deficit;
    for (const double each : load) deficit.push_back(std::max(0.0, fair - each));
    const double sum = std::accumulate(deficit.begin(), deficit.end(), 0.0);
    for (double& value : deficit) {
      const double balanced = sum > 0 ? value / sum : 1.0 / options_.data;
      value = (1 - options_.alpha) / options_.data + options_.alpha * balanced;
    }
    return deficit;
  }

  /// From shards to ranks: longest processing time first in each tensor-parallel group.
  std::vector<Placed> with_tensor_ranks(std::vector<Placed> placed) const {
    if (options_.tensor == 1) return placed;
    const auto tensor = static_cast<std::size_t>(options_.tensor);
    auto ranks = placed;
    for (std::size_t shard = 0; shard < static_cast<std::size_t>(options_.data); ++shard) {
      std::vector<Item> own;
      std::vector<std::size_t> places;
      for (std::size_t at = 0; at < placed.size(); ++at) {
        if (placed[at].bin != shard) continue;
        own.push_back({items_[at].item.load, 0});
        places.push_back(at);
      }
      Bins bins{.load = std::vector<double>(tensor, 0.0),
                .bins_per_shard = options_.tensor,
                .elements = {0},
                .most_elements = {0}};
      const auto bin_of = pack(own, bins);
      for (std::size_t at = 0; at < own.size(); ++at) {
        ranks[places[at]].bin = shard * tensor + bin_of[at];
      }
    }
    return ranks;
  }

  const PlanOptions& options_;
  std::vector<GroupedItem> items_;
  std::vector<PlacedMatrix> matrices_;  // [item]
  bool has_groups_ = false;
};

}  // namespace

Plan plan_contiguous(std::span<const OwnedTensor> tensors, const PlanOptions& options) {
  const auto buckets = ragged_buckets(tensors, options);
  const Owners owners(tensors, buckets, options);
  const auto placed = options.order == BucketOrder::by_owner ? owners.by_work() : owners.by_cuts();
  Plan plan;
  plan.assignment = Assignment::contiguous;
  plan.load.assign(
      static_cast<std::size_t>(options.data) * static_cast<std::size_t>(options.tensor), 0.0);
  ShardWriter writer(tensors, options);
  auto next = placed.begin();
  for (const auto& [kind, members] : buckets) {
    for (const auto at : members) {
      const auto& tensor = tensors[at];
      if (!tensor.is_matrix()) {
        writer.add_filler(at);
        continue;
      }
      const int rank = static_cast<int>(next->bin);
      writer.put(rank / options.tensor, at, 0, tensor.held_elements, next->end);
      plan.matrices.push_back(
          {.tensor = at, .ranges = {{rank, 0, tensor.shape.longer()}}, .square_ranks = {}});
      plan.load[next->bin] += tensor.flops;
      ++next;
    }
    writer.write_bucket(kind);
  }
  finish(tensors, options, writer, plan);
  return plan;
}

}  // namespace trireme::ownership
