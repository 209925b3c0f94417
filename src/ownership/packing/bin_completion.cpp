// SPDX-License-Identifier: Apache-2.0
#include "ownership/packing/group_kinds.hpp"
#include "ownership/packing/patterns.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace trireme::ownership {
namespace {

constexpr int most_starts = 4;
constexpr int passes_of_start = 20;
/// At a start the price of an item of a part x of a bin is x + curve * x^2: large ones go first.
/// One curve fails where the other does not.
constexpr double curves[] = {0.2, 0.05};
/// Rise in the price of items that are left over.
constexpr double rise_of_left_over = 1.02;
/// Weight of the prices so far in a correction is drawn between its inverse and this.
constexpr double most_noise = 1.5;

/// Passes over all bins, each filled with the pattern of the most value by the prices so far.
class BinCompletion {
 public:
  BinCompletion(std::span<const GroupedItem> items, std::size_t bins)
      : kinds_(group_kinds(items)), item_count_(items.size()), patterns_(bins), search_(kinds_) {}

  bool is_over() const { return search_.is_over(); }

  /// No largest load is below this: groups lie in at most two bins.
  double largest_half() const {
    double largest = 0;
    for (const auto& kind : kinds_.groups) {
      double least = kind.all().load;
      for (const auto& front : kind.until) {
        least = std::min(least, std::max(front.load, kind.all().load - front.load));
      }
      largest = std::max(largest, least);
    }
    return largest;
  }

  /// Fills bins of so much room. False if some groups are left.
  bool fill(const Item& room) {
    room_ = room;
    for (int start = 0; start < most_starts; ++start) {
      curve_ = curves[static_cast<std::size_t>(start) % std::size(curves)];
      prices_.clear();
      for (std::size_t item = 0; item < kinds_.items.size(); ++item) {
        prices_.push_back(first_price(item));
      }
      for (int pass = 0; pass < passes_of_start; ++pass) {
        if (fill_once()) return true;
        if (is_over()) return false;
      }
    }
    return false;
  }

  std::vector<Placed> placed() const {
    std::vector<Placed> placed(item_count_);
    std::vector<std::size_t> next(kinds_.groups.size(), 0);
    for (std::size_t bin = 0; bin < patterns_.size(); ++bin) {
      const auto& [counts, cut, sum, value] = patterns_[bin];
      for (std::size_t kind = 0; kind < kinds_.groups.size(); ++kind) {
        const auto& [items, until, members, first_cut] = kinds_.groups[kind];
        for (int count = 0; count < counts[kind]; ++count) {
          const auto first = members[next[kind]++];
          for (std::size_t at = 0; at < items.size(); ++at) placed[first + at] = {bin};
        }
      }
      if (cut.kind == none) continue;
      const auto first = kinds_.groups[cut.kind].members[next[cut.kind]++];
      for (std::size_t at = 0; at < kinds_.groups[cut.kind].size(); ++at) {
        placed[first + at] =
            at < cut.from ? Placed{bin, Placed::End::back} : Placed{bin + 1, Placed::End::front};
      }
    }
    return placed;
  }

 private:
  double first_price(std::size_t item) const {
    const double part = kinds_.items[item].load / room_.load;
    return part + curve_ * part * part;
  }

  /// One pass. False if groups are left.
  bool fill_once() {
    Demand demand(kinds_);
    Remainder remainder;
    for (std::size_t bin = 0; bin < patterns_.size(); ++bin) {
      search_.begin_bin(demand, prices_, room_);
      const bool last = bin + 1 == patterns_.size();
      auto& pattern = patterns_[bin];
      pattern = search_.best(remainder, last ? std::vector<double>{} : search_.values_of_cuts());
      if (pattern.value == impossible) return false;
      const auto packed = items_of(remainder, pattern);
      for (std::size_t kind = 0; kind < demand.groups.size(); ++kind) {
        demand.groups[kind] -= pattern.counts[kind] + (kind == pattern.cut.kind ? 1 : 0);
      }
      demand.sum = demand.sum - pattern.sum;
      correct_prices(packed, demand.items, pattern.sum.load);
      for (std::size_t item = 0; item < packed.size(); ++item) demand.items[item] -= packed[item];
      remainder = pattern.cut;
    }
    bool done = true;
    for (std::size_t item = 0; item < demand.items.size(); ++item) {
      if (demand.items[item] == 0) continue;
      prices_[item] *= rise_of_left_over;
      done = false;
    }
    return done;
  }

  /// [item kind]: items of a bin.
  std::vector<int> items_of(Remainder remainder, const Pattern& pattern) const {
    std::vector<int> counts(kinds_.items.size(), 0);
    const auto add = [&](std::size_t kind, std::size_t from, std::size_t to, int count) {
      for (auto at = from; at < to; ++at) counts[kinds_.groups[kind].items[at]] += count;
    };
    for (std::size_t kind = 0; kind < kinds_.groups.size(); ++kind) {
      add(kind, 0, kinds_.groups[kind].size(), pattern.counts[kind]);
    }
    const auto& [kind, from] = remainder;
    if (kind != none) add(kind, from, kinds_.groups[kind].size(), 1);
    if (pattern.cut.kind != none) add(pattern.cut.kind, 0, pattern.cut.from, 1);
    return counts;
  }

  /// Items of a bin with room to spare become dearer, by their part of all that were left.
  void correct_prices(const std::vector<int>& packed, const std::vector<int>& left, double load) {
    for (std::size_t item = 0; item < packed.size(); ++item) {
      if (packed[item] == 0 || kinds_.items[item].load <= 0) continue;
      const double old = 2 * noise() * left[item] / packed[item];
      const double seen = first_price(item) * room_.load / load;
      prices_[item] = (old * prices_[item] + seen) / (old + 1);
    }
  }

  double noise() {
    const auto part = static_cast<double>(random_()) / static_cast<double>(std::minstd_rand::max());
    return 1 / most_noise + part * (most_noise - 1 / most_noise);
  }

  GroupKinds kinds_;
  std::size_t item_count_;
  std::vector<Pattern> patterns_;  // [bin]
  PatternSearch search_;
  Item room_;  // of each bin
  double curve_ = 0;
  std::vector<double> prices_;  // [item kind]
  std::minstd_rand random_;     // the standard's numbers: every rank plans the same
};

/// No largest load is below this: the mean, and what k + 1 items have at least that share a bin
/// because there are more than k for each.
double least_load(std::span<const GroupedItem> items, std::size_t bins) {
  std::vector<double> loads;
  for (const auto& each : items) loads.push_back(each.item.load);
  std::sort(loads.rbegin(), loads.rend());
  double least = std::accumulate(loads.begin(), loads.end(), 0.0) / static_cast<double>(bins);
  for (std::size_t end = 1; end <= loads.size(); end += bins) {
    const auto sharing = static_cast<std::ptrdiff_t>((end - 1) / bins + 1);
    const auto behind = loads.begin() + static_cast<std::ptrdiff_t>(end);
    least = std::max(least, std::accumulate(behind - sharing, behind, 0.0));
  }
  return least;
}

}  // namespace

std::optional<std::vector<Placed>> complete_bins(std::span<const GroupedItem> items,
                                                 std::size_t bins, Item most) {
  std::optional<std::vector<Placed>> best;
  BinCompletion completion(items, bins);
  double least = std::max(least_load(items, bins), completion.largest_half());
  // Bisection: what is not found is taken to be impossible.
  while (most.load > least * good_over_least && !completion.is_over()) {
    const double load = (least + most.load) / 2;
    // Rounding of sums shall not decide.
    if (!completion.fill({load * (1 + 1e-9), most.elements})) {
      least = load;
    } else {
      best = completion.placed();
      std::vector<double> loads(bins, 0.0);
      for (std::size_t at = 0; at < items.size(); ++at) {
        loads[(*best)[at].bin] += items[at].item.load;
      }
      most.load = *std::max_element(loads.begin(), loads.end());
    }
  }
  return best;
}

}  // namespace trireme::ownership
