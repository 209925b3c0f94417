// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"

#include "layout/ownership/packing.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace trireme::layout {
namespace {

constexpr std::size_t sides[] = {0, 1};
/// Counts of divided groups that are tried, between none and all that fit.
constexpr std::size_t most_parts = 16;

Item operator+(const Item& a, const Item& b) {
  return {a.load + b.load, a.elements + b.elements};
}

/// Which groups are divided before others, and where.
enum class DividedFirst {
  most_load,    ///< in halves, which fill bins
  most_uneven,  ///< in halves, of which the smaller fills what others leave
  last_alone    ///< such that the last item fills what others leave
};

/// Items [begin, end), and their division in two.
struct Group {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t middle = 0;
  Item all;
  Item halves[2];

  bool divisible() const { return end - begin > 1; }
};

std::vector<Group> groups_of(std::span<const Item> items, std::span<const std::size_t> numbers,
                             DividedFirst by) {
  std::vector<Group> groups;
  for (std::size_t at = 0; at < items.size(); ++at) {
    if (at == 0 || numbers[at] != numbers[at - 1]) groups.push_back({at, at, at, {}, {}});
    groups.back().end = at + 1;
    groups.back().all = groups.back().all + items[at];
  }
  for (auto& group : groups) {
    double least = 0;
    Item front;
    for (auto at = group.begin; at + 1 < group.end; ++at) {
      front = front + items[at];
      const Item back{group.all.load - front.load, group.all.elements - front.elements};
      const double larger = std::max(front.load, back.load);
      const bool wanted = by == DividedFirst::last_alone || larger < least;
      if (at > group.begin && !wanted) continue;
      least = larger;
      group.middle = at + 1;
      group.halves[0] = front;
      group.halves[1] = back;
    }
  }
  return groups;
}

/// One way to pack: the groups of `divided` lie in two bins each.
class Packing {
 public:
  Packing(Bins bins, std::size_t items) : bins_(std::move(bins)), placed_(items) {}

  /// `order`: groups with the most load first, of which the first `count` are divided.
  void run(std::span<const Group> groups, std::span<const std::size_t> order, std::size_t count) {
    for (std::size_t at = 0; at < order.size(); ++at) {
      const auto& group = groups[order[at]];
      if (at < count) {
        make_room(std::max(group.halves[0].elements, group.halves[1].elements));
      } else {
        make_room(group.all.elements);
      }
    }
    std::set<std::size_t> taken;
    for (const auto index : order.first(count)) divide(groups[index], taken);
    std::vector<Item> whole;
    for (const auto index : order.subspan(count)) whole.push_back(groups[index].all);
    const auto bin_of = pack(whole, bins_);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      const auto& group = groups[order[count + at]];
      for (auto item = group.begin; item < group.end; ++item) placed_[item] = {bin_of[at]};
    }
  }

  /// Lower largest load, or the same and shorter shards. A gain below a part in a billion is
  /// rounding.
  bool better_than(const Packing& other) const {
    if (largest_load() < other.largest_load() * (1 - 1e-9)) return true;
    return largest_load() <= other.largest_load() * (1 + 1e-9) && longest() < other.longest();
  }
  const Bins& bins() const { return bins_; }
  const std::vector<Placed>& placed() const { return placed_; }

 private:
  double largest_load() const { return *std::max_element(bins_.load.begin(), bins_.load.end()); }
  std::int64_t longest() const {
    return *std::max_element(bins_.elements.begin(), bins_.elements.end());
  }

  void make_room(std::int64_t elements) {
    for (auto& most : bins_.most_elements) most = std::max(most, elements);
  }

  /// Puts a group where two bins meet that no other group has taken, such that their larger load is
  /// least; of those that have room, if any has.
  void divide(const Group& group, std::set<std::size_t>& taken) {
    std::size_t best = 0;
    bool found = false;
    bool best_fits = false;
    double best_load = 0;
    for (std::size_t bin = 0; bin + 1 < bins_.load.size(); ++bin) {
      if (taken.count(bin) > 0) continue;
      double load = 0;
      bool fits = true;
      for (const auto side : sides) {
        load = std::max(load, bins_.load[bin + side] + group.halves[side].load);
        fits = fits && bins_.elements[bin + side] + group.halves[side].elements <=
                           bins_.most_elements[bin + side];
      }
      const bool better = !found || (fits != best_fits ? fits : load < best_load);
      if (!better) continue;
      found = true;
      best = bin;
      best_fits = fits;
      best_load = load;
    }
    TRIREME_ENSURE(found, "there are as many places between bins as groups to divide");
    taken.insert(best);
    for (const auto side : sides) {
      bins_.load[best + side] += group.halves[side].load;
      bins_.elements[best + side] += group.halves[side].elements;
    }
    for (auto item = group.begin; item < group.end; ++item) {
      placed_[item] = item < group.middle ? Placed{best, Placed::End::back}
                                          : Placed{best + 1, Placed::End::front};
    }
  }

  Bins bins_;
  std::vector<Placed> placed_;
};

/// Groups that can be divided first.
std::vector<std::size_t> order_of(std::span<const Group> groups, DividedFirst by) {
  const auto key = [&](const Group& group) {
    if (!group.divisible() || by == DividedFirst::most_load) return group.all.load;
    return -std::min(group.halves[0].load, group.halves[1].load) / group.all.load;
  };
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (groups[a].divisible() != groups[b].divisible()) return groups[a].divisible();
    return key(groups[a]) > key(groups[b]);
  });
  return order;
}

/// How many groups to divide: none, those above a part of a bin's fair load, or a part of what has
/// room between bins.
std::set<std::size_t> counts_of(std::span<const Group> groups, std::span<const std::size_t> order,
                                const Bins& bins) {
  const auto borders = bins.load.size() - 1;
  const auto divisible = static_cast<std::size_t>(std::count_if(
      groups.begin(), groups.end(), [](const Group& each) { return each.divisible(); }));
  double sum = std::accumulate(bins.load.begin(), bins.load.end(), 0.0);
  for (const auto& each : groups) sum += each.all.load;
  const double fair = sum / static_cast<double>(bins.load.size());
  std::set<std::size_t> counts{0};
  for (const double least : {fair, fair / 2, fair / 4}) {
    std::size_t count = 0;
    while (count < divisible && groups[order[count]].all.load > least) ++count;
    counts.insert(std::min(count, borders));
  }
  for (std::size_t part = 1; part <= most_parts; ++part) {
    counts.insert(std::min(divisible, borders * part / most_parts));
  }
  return counts;
}

}  // namespace

std::vector<Placed> pack_groups(std::span<const Item> items, std::span<const std::size_t> group,
                                Bins& bins) {
  TRIREME_EXPECT(bins.elements.size() == bins.load.size() && group.size() == items.size(),
                 "bins are shards, and each item has a group");
  Packing best(bins, items.size());
  bool found = false;
  for (const auto by :
       {DividedFirst::most_load, DividedFirst::most_uneven, DividedFirst::last_alone}) {
    const auto groups = groups_of(items, group, by);
    const auto order = order_of(groups, by);
    for (const auto count : counts_of(groups, order, bins)) {
      Packing packing(bins, items.size());
      packing.run(groups, order, count);
      if (!found || packing.better_than(best)) best = std::move(packing);
      found = true;
    }
  }
  bins = best.bins();
  return best.placed();
}

}  // namespace trireme::layout
