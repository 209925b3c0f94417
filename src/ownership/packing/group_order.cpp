// SPDX-License-Identifier: Apache-2.0
#include "ownership/packing/packing.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace trireme::ownership {
namespace {

/// Buckets of more items have so many groups that few may lie in two bins: pack_groups() is for
/// these.
constexpr std::size_t most_items_of_bucket = 32;
/// Checks of pairs of groups, and of buckets, before a search is given up.
constexpr std::size_t most_checks = 500'000;
/// Steps in which an item is not exchanged again, at least.
constexpr std::size_t tabu_tenure = 7;

/// Items [begin, end).
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class GroupOrder {
 public:
  GroupOrder(std::span<const GroupedItem> items, std::vector<std::size_t> kinds,
             std::vector<std::size_t> bin_of)
      : kind_of_(std::move(kinds)), bin_of_(std::move(bin_of)) {
    kinds_.resize(items.empty() ? 0 : *std::max_element(kind_of_.begin(), kind_of_.end()) + 1);
    for (std::size_t at = 0; at < items.size(); ++at) {
      const bool new_bucket = at == 0 || items[at].bucket != items[at - 1].bucket;
      const bool new_group = new_bucket || items[at].group != items[at - 1].group;
      if (new_bucket) {
        buckets_.push_back({groups_.size(), groups_.size()});
        faults_.push_back(0);
      }
      if (new_group) {
        groups_.push_back({at, at});
        ++buckets_.back().end;
      }
      groups_.back().end = at + 1;
      bucket_of_.push_back(buckets_.size() - 1);
      group_of_.push_back(groups_.size() - 1);
      kinds_[kind_of_[at]].push_back(at);
    }
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      faults_[bucket] = faults_in(bucket);
    }
    tabu_until_.assign(items.size(), 0);
  }

  bool is_possible() const {
    return std::all_of(buckets_.begin(), buckets_.end(), [&](const Range& bucket) {
      return groups_[bucket.end - 1].end - groups_[bucket.begin].begin <= most_items_of_bucket;
    });
  }

  /// Exchanges as long as they lower the faults, and then for a while those that raise them least.
  /// False if some are left.
  bool mend() {
    for (bool better = true; better;) {
      better = false;
      for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
        while (faults_[bucket] > 0 && exchange_one_of(bucket)) better = true;
      }
    }
    std::size_t step = 0;
    for (std::size_t bucket = 0; checks_ < most_checks && faults() > 0;) {
      bucket = (bucket + 1) % buckets_.size();
      checks_ += buckets_.size();  // items that have no equal leave nothing else to check
      if (faults_[bucket] > 0) exchange_best_of(bucket, ++step);
    }
    return faults() == 0;
  }

  std::vector<Placed> placed() const {
    std::vector<Placed> placed;
    for (const auto& group : groups_) {
      const auto [first, last] = bins_of(group);
      for (auto at = group.begin; at < group.end; ++at) {
        const auto bin = bin_of_[at];
        auto end = Placed::End::any;
        if (first < last && bin == first) end = Placed::End::back;
        if (first < last && bin == last) end = Placed::End::front;
        placed.push_back({bin, end});
      }
    }
    return placed;
  }

 private:
  /// Lowest and highest bin.
  std::pair<std::size_t, std::size_t> bins_of(const Range& group) const {
    const auto begin = bin_of_.begin() + static_cast<std::ptrdiff_t>(group.begin);
    const auto end = bin_of_.begin() + static_cast<std::ptrdiff_t>(group.end);
    const auto [first, last] = std::minmax_element(begin, end);
    return {*first, *last};
  }

  /// Whether two groups of a bucket overlap. Two that only meet, or one bin that is none of the
  /// other's inner bins, do not.
  bool overlap(std::size_t group, std::size_t other) const {
    const auto [first, last] = bins_of(groups_[group]);
    const auto [from, to] = bins_of(groups_[other]);
    if (from == to) return first < from && from < last;
    if (first == last) return from < first && first < to;
    return std::max(first, from) < std::min(last, to);
  }

  /// Neighbours in a group that are in the wrong order.
  int inversions(std::size_t group) const {
    int count = 0;
    for (auto at = groups_[group].begin; at + 1 < groups_[group].end; ++at) {
      count += bin_of_[at] > bin_of_[at + 1] ? 1 : 0;
    }
    return count;
  }

  int faults_in(std::size_t bucket) const {
    int faults = 0;
    const auto [begin, end] = buckets_[bucket];
    for (auto group = begin; group < end; ++group) {
      faults += inversions(group);
      for (auto other = group + 1; other < end; ++other) faults += overlap(group, other) ? 1 : 0;
    }
    return faults;
  }

  /// Faults of one group in its bucket, alone and with the others.
  int faults_of(std::size_t group) {
    const auto [begin, end] = buckets_[bucket_of_[groups_[group].begin]];
    int faults = inversions(group);
    for (auto other = begin; other < end; ++other) {
      faults += other != group && overlap(group, other) ? 1 : 0;
    }
    checks_ += end - begin;
    return faults;
  }

  int faults() const { return std::accumulate(faults_.begin(), faults_.end(), 0); }

  /// Exchanges one of a bucket's items with the first equal one that lowers the faults.
  bool exchange_one_of(std::size_t bucket) {
    const auto [begin, end] = buckets_[bucket];
    for (auto at = groups_[begin].begin; at < groups_[end - 1].end; ++at) {
      for (const auto other : kinds_[kind_of_[at]]) {
        if (bin_of_[at] == bin_of_[other] || change(at, other) >= 0) continue;
        exchange(at, other);
        return true;
      }
    }
    return false;
  }

  /// The exchange of one of a bucket's items that raises the faults least, of items that have not
  /// been exchanged lately (tabu search, Glover 1989).
  void exchange_best_of(std::size_t bucket, std::size_t step) {
    const auto [begin, end] = buckets_[bucket];
    int least = std::numeric_limits<int>::max();
    std::pair<std::size_t, std::size_t> best;
    for (auto at = groups_[begin].begin; at < groups_[end - 1].end; ++at) {
      for (const auto other : kinds_[kind_of_[at]]) {
        if (bin_of_[at] == bin_of_[other]) continue;
        if (tabu_until_[at] > step || tabu_until_[other] > step) continue;
        const int rise = change(at, other);
        if (rise >= least) continue;
        least = rise;
        best = {at, other};
      }
    }
    if (least == std::numeric_limits<int>::max()) return;
    exchange(best.first, best.second);
    for (const auto at : {best.first, best.second}) tabu_until_[at] = step + tabu_tenure + step % 3;
  }

  /// Faults that an exchange adds to those of all buckets.
  int change(std::size_t a, std::size_t b) {
    const int before = faults_of_both(group_of_[a], group_of_[b]);
    std::swap(bin_of_[a], bin_of_[b]);
    const int after = faults_of_both(group_of_[a], group_of_[b]);
    std::swap(bin_of_[a], bin_of_[b]);
    return after - before;
  }

  int faults_of_both(std::size_t a, std::size_t b) {
    if (a == b) return faults_of(a);
    const bool same_bucket = bucket_of_[groups_[a].begin] == bucket_of_[groups_[b].begin];
    return faults_of(a) + faults_of(b) - (same_bucket && overlap(a, b) ? 1 : 0);
  }

  void exchange(std::size_t a, std::size_t b) {
    std::swap(bin_of_[a], bin_of_[b]);
    for (const auto at : {a, b}) faults_[bucket_of_[at]] = faults_in(bucket_of_[at]);
  }

  std::vector<std::size_t> kind_of_;
  std::vector<std::size_t> bin_of_;
  std::vector<Range> groups_;   // of items
  std::vector<Range> buckets_;  // of groups
  std::vector<std::size_t> bucket_of_;
  std::vector<std::size_t> group_of_;
  std::vector<std::vector<std::size_t>> kinds_;
  std::vector<int> faults_;              // [bucket]
  std::vector<std::size_t> tabu_until_;  // [item]: step from which on it may be exchanged
  std::size_t checks_ = 0;               // of pairs of groups, and of buckets
};

/// Kinds of items, equal ones having one: [item].
std::vector<std::size_t> kinds_of(std::span<const GroupedItem> items) {
  std::vector<Item> known;
  std::vector<std::size_t> kinds;
  for (const auto& [item, group, bucket] : items) {
    const auto same = std::find(known.begin(), known.end(), item);
    kinds.push_back(static_cast<std::size_t>(same - known.begin()));
    if (same == known.end()) known.push_back(item);
  }
  return kinds;
}

/// Bins numbered anew such that bins of equal content are spread evenly, and items of a kind given
/// to them in order: those of a group lie near to each other.
std::vector<std::size_t> spread_kinds(const std::vector<std::size_t>& kinds,
                                      const std::vector<std::size_t>& bin_of) {
  std::map<std::size_t, std::vector<std::size_t>> content;  // [bin]: kinds, sorted
  for (std::size_t at = 0; at < kinds.size(); ++at) content[bin_of[at]].push_back(kinds[at]);
  std::map<std::vector<std::size_t>, std::size_t> alike;  // bins of a content
  for (auto& [bin, own] : content) {
    std::sort(own.begin(), own.end());
    ++alike[own];
  }
  std::map<std::vector<std::size_t>, std::size_t> seen;
  std::vector<std::pair<double, std::size_t>> order;  // place, bin
  for (const auto& [bin, own] : content) {
    const auto before = static_cast<double>(seen[own]++);
    order.emplace_back((before + 0.5) / static_cast<double>(alike[own]), bin);
  }
  std::sort(order.begin(), order.end());
  std::map<std::size_t, std::vector<std::size_t>> places;  // [kind]: numbers of its bins
  for (std::size_t number = 0; number < order.size(); ++number) {
    for (const auto kind : content[order[number].second]) places[kind].push_back(number);
  }
  std::map<std::size_t, std::size_t> next;
  std::vector<std::size_t> numbers;
  for (const auto kind : kinds) numbers.push_back(places[kind][next[kind]++]);
  return numbers;
}

/// Bins numbered anew, in the order of their first items.
std::vector<std::size_t> by_first_item(const std::vector<std::size_t>& bin_of) {
  std::map<std::size_t, std::size_t> number;
  std::vector<std::size_t> numbers;
  for (const auto bin : bin_of) numbers.push_back(number.emplace(bin, number.size()).first->second);
  return numbers;
}

}  // namespace

std::optional<std::vector<Placed>> order_groups(std::span<const GroupedItem> items,
                                                const std::vector<std::size_t>& bin_of) {
  const auto kinds = kinds_of(items);
  for (const auto& start : {spread_kinds(kinds, bin_of), by_first_item(bin_of), bin_of}) {
    GroupOrder order(items, kinds, start);
    if (!order.is_possible()) return std::nullopt;
    if (order.mend()) return order.placed();
  }
  return std::nullopt;
}

}  // namespace trireme::ownership
