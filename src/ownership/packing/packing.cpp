// SPDX-License-Identifier: Apache-2.0
#include "ownership/packing/packing.hpp"

#include "trireme/base/contract.hpp"

#include "ownership/packing/resplit.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace trireme::ownership {
namespace {

/// Exchange of an item of the most loaded bin with one of another bin, or with nothing.
struct Exchange {
  std::size_t out = none;  ///< item
  std::size_t in = none;   ///< item, or none
  std::size_t bin = none;  ///< the other bin
  /// Larger of the two bins' loads afterwards.
  double load = 0;
};

class Packer {
 public:
  Packer(std::span<const Item> items, Bins& bins) : items_(items), bins_(bins) {
    bin_of_.resize(items.size(), none);
    content_.resize(bins.load.size());
  }

  void place_longest_first() {
    std::vector<std::size_t> order(items_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return items_[a].load > items_[b].load; });
    // By load, so that not all bins are looked at for each item.
    std::set<std::pair<double, std::size_t>> by_load;
    for (std::size_t bin = 0; bin < content_.size(); ++bin) by_load.emplace(bins_.load[bin], bin);
    for (const auto item : order) {
      const auto found = std::find_if(by_load.begin(), by_load.end(), [&](const auto& each) {
        return fits(each.second, items_[item].elements);
      });
      const auto bin = found == by_load.end() ? emptiest() : found->second;
      by_load.erase({bins_.load[bin], bin});
      put(item, bin);
      by_load.emplace(bins_.load[bin], bin);
    }
  }

  void improve() {
    // Each exchange lowers the sum of squares of the loads; the limit is against slow ends.
    const auto most_exchanges = 4 * items_.size() + bins_.load.size();
    const double least = least_possible();
    for (std::size_t count = 0; count < most_exchanges; ++count) {
      const auto most = most_loaded();
      if (bins_.load[most] <= least * (1 + 1e-9)) return;
      const auto best = best_exchange(most);
      if (best.out == none) {
        if (!divide_with_another(most)) return;
        continue;
      }
      remove(best.out);
      if (best.in != none) {
        remove(best.in);
        put(best.in, most);
      }
      put(best.out, best.bin);
    }
  }

  std::vector<std::size_t> bin_of() && { return std::move(bin_of_); }

 private:
  /// For what fits nowhere.
  std::size_t emptiest() const {
    std::size_t emptiest = 0;
    for (std::size_t bin = 1; bin < content_.size(); ++bin) {
      if (is_emptier(bin, emptiest)) emptiest = bin;
    }
    return emptiest;
  }

  bool is_emptier(std::size_t bin, std::size_t than) const {
    const auto room = [&](std::size_t at) {
      const auto shard = bins_.shard_of(at);
      return bins_.most_elements[shard] - bins_.elements[shard];
    };
    if (room(bin) != room(than)) return room(bin) > room(than);
    return bins_.load[bin] < bins_.load[than];
  }

  bool fits(std::size_t bin, std::int64_t more_elements) const {
    const auto shard = bins_.shard_of(bin);
    return bins_.elements[shard] + more_elements <= bins_.most_elements[shard];
  }

  /// No largest load is below this.
  double least_possible() const {
    double least = std::accumulate(bins_.load.begin(), bins_.load.end(), 0.0) /
                   static_cast<double>(bins_.load.size());
    for (const auto& item : items_) least = std::max(least, item.load);
    return least;
  }

  std::size_t most_loaded() const {
    std::size_t most = 0;
    for (std::size_t bin = 1; bin < content_.size(); ++bin) {
      if (bins_.load[bin] > bins_.load[most]) most = bin;
    }
    return most;
  }

  Exchange best_exchange(std::size_t most) const {
    Exchange best;
    best.load = bins_.load[most];
    for (const auto out : content_[most]) {
      for (std::size_t bin = 0; bin < content_.size(); ++bin) {
        if (bin == most || bins_.load[bin] >= best.load) continue;
        consider({.out = out, .in = none, .bin = bin, .load = 0}, most, best);
        for (const auto in : content_[bin]) {
          consider({.out = out, .in = in, .bin = bin, .load = 0}, most, best);
        }
      }
    }
    return best;
  }

  void consider(Exchange exchange, std::size_t most, Exchange& best) const {
    const Item nothing;
    const Item& out = items_[exchange.out];
    const Item& in = exchange.in == none ? nothing : items_[exchange.in];
    const double moved = out.load - in.load;
    if (moved <= 0) return;
    exchange.load = std::max(bins_.load[most] - moved, bins_.load[exchange.bin] + moved);
    // A gain below a part in a billion is rounding, and may be had for ever.
    if (exchange.load >= best.load * (1 - 1e-9)) return;
    const std::int64_t elements = out.elements - in.elements;
    const bool same_shard = bins_.shard_of(most) == bins_.shard_of(exchange.bin);
    if (same_shard || (fits_or_shrinks(exchange.bin, elements) && fits_or_shrinks(most, -elements)))
      best = exchange;
  }

  bool fits_or_shrinks(std::size_t bin, std::int64_t more_elements) const {
    return more_elements <= 0 || fits(bin, more_elements);
  }

  /// Divides the items of the most loaded bin and another one anew, if that lowers its load.
  bool divide_with_another(std::size_t most) {
    for (std::size_t bin = 0; bin < content_.size(); ++bin) {
      if (bin == most) continue;
      auto both = content_[most];
      both.insert(both.end(), content_[bin].begin(), content_[bin].end());
      std::vector<Item> items;
      for (const auto item : both) items.push_back(items_[item]);
      const double load = bins_.load[most];
      const auto in_most = divide_anew(items, pair_of(most, bin), load);
      if (!in_most) continue;
      for (const auto item : both) remove(item);
      for (std::size_t at = 0; at < both.size(); ++at) put(both[at], (*in_most)[at] ? most : bin);
      return true;
    }
    return false;
  }

  Pair pair_of(std::size_t first, std::size_t second) const {
    Pair pair;
    const bool same_shard = bins_.shard_of(first) == bins_.shard_of(second);
    const std::size_t bins[2] = {first, second};
    for (std::size_t side = 0; side < 2; ++side) {
      const auto bin = bins[side];
      pair.load[side] = bins_.load[bin];
      pair.elements[side] = same_shard ? 0 : bins_.elements[bins_.shard_of(bin)];
      pair.most_elements[side] = same_shard ? INT64_MAX : bins_.most_elements[bins_.shard_of(bin)];
      for (const auto item : content_[bin]) {
        pair.load[side] -= items_[item].load;
        if (!same_shard) pair.elements[side] -= items_[item].elements;
      }
    }
    return pair;
  }

  void put(std::size_t item, std::size_t bin) {
    bin_of_[item] = bin;
    content_[bin].push_back(item);
    bins_.load[bin] += items_[item].load;
    bins_.elements[bins_.shard_of(bin)] += items_[item].elements;
  }

  void remove(std::size_t item) {
    const auto bin = bin_of_[item];
    auto& content = content_[bin];
    content.erase(std::find(content.begin(), content.end(), item));
    bins_.load[bin] -= items_[item].load;
    bins_.elements[bins_.shard_of(bin)] -= items_[item].elements;
  }

  std::span<const Item> items_;
  Bins& bins_;
  std::vector<std::size_t> bin_of_;
  std::vector<std::vector<std::size_t>> content_;
};

}  // namespace

std::vector<std::size_t> pack(std::span<const Item> items, Bins& bins) {
  TRIREME_EXPECT(!bins.load.empty() &&
                     bins.elements.size() * static_cast<std::size_t>(bins.bins_per_shard) ==
                         bins.load.size() &&
                     bins.most_elements.size() == bins.elements.size(),
                 "shards of bins_per_shard bins");
  Packer packer(items, bins);
  packer.place_longest_first();
  packer.improve();
  return std::move(packer).bin_of();
}

}  // namespace trireme::ownership
