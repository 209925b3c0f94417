// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"

#include "ownership/packing/packing.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace trireme::ownership {
namespace {

constexpr std::size_t sides[] = {0, 1};
/// Counts of divided groups that are tried, between none and all that fit.
constexpr std::size_t most_parts = 16;

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
  std::size_t bucket = 0;
  Item all;
  Item halves[2];

  bool divisible() const { return end - begin > 1; }
};

std::vector<Group> groups_of(std::span<const GroupedItem> items, DividedFirst by) {
  std::vector<Group> groups;
  for (std::size_t at = 0; at < items.size(); ++at) {
    if (at == 0 || items[at].group != items[at - 1].group) {
      groups.push_back({at, at, at, items[at].bucket, {}, {}});
    }
    groups.back().end = at + 1;
    groups.back().all = groups.back().all + items[at].item;
  }
  for (auto& group : groups) {
    double least = 0;
    Item front;
    for (auto at = group.begin; at + 1 < group.end; ++at) {
      front = front + items[at].item;
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

  /// `order`: groups with the most load first, of which the first `count` are divided where two
  /// bins still meet.
  void run(std::span<const Group> groups, std::span<const std::size_t> order, std::size_t count) {
    for (std::size_t at = 0; at < order.size(); ++at) {
      const auto& group = groups[order[at]];
      if (at < count) {
        make_room(std::max(group.halves[0].elements, group.halves[1].elements));
      } else {
        make_room(group.all.elements);
      }
    }
    Taken taken;
    std::vector<std::size_t> left;
    for (const auto index : order.first(count)) {
      if (divide(groups[index], taken)) continue;
      make_room(groups[index].all.elements);
      left.push_back(index);
    }
    const auto others = order.subspan(count);
    left.insert(left.end(), others.begin(), others.end());
    std::vector<Item> whole;
    for (const auto index : left) whole.push_back(groups[index].all);
    const auto bin_of = pack(whole, bins_);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      const auto& group = groups[left[at]];
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

  double largest_load() const { return *std::max_element(bins_.load.begin(), bins_.load.end()); }
  std::int64_t longest() const {
    return *std::max_element(bins_.elements.begin(), bins_.elements.end());
  }

 private:
  /// Buckets and the first of two neighbouring bins that a divided group lies in.
  using Taken = std::set<std::pair<std::size_t, std::size_t>>;

  void make_room(std::int64_t elements) {
    for (auto& most : bins_.most_elements) most = std::max(most, elements);
  }

  /// Puts a group where two bins meet that no other group of its bucket has taken, such that their
  /// larger load is least; of those that have room, if any has. False if none is left.
  bool divide(const Group& group, Taken& taken) {
    std::size_t best = 0;
    bool found = false;
    bool best_fits = false;
    double best_load = 0;
    for (std::size_t bin = 0; bin + 1 < bins_.load.size(); ++bin) {
      if (taken.count({group.bucket, bin}) > 0) continue;
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
    if (!found) return false;
    taken.insert({group.bucket, best});
    for (const auto side : sides) {
      bins_.load[best + side] += group.halves[side].load;
      bins_.elements[best + side] += group.halves[side].elements;
    }
    for (auto item = group.begin; item < group.end; ++item) {
      placed_[item] = item < group.middle ? Placed{best, Placed::End::back}
                                          : Placed{best + 1, Placed::End::front};
    }
    return true;
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
  const auto divisible = static_cast<std::size_t>(std::count_if(
      groups.begin(), groups.end(), [](const Group& each) { return each.divisible(); }));
  const auto buckets = groups.back().bucket - groups.front().bucket + 1;
  const auto most = std::min(divisible, (bins.load.size() - 1) * buckets);
  double sum = std::accumulate(bins.load.begin(), bins.load.end(), 0.0);
  for (const auto& each : groups) sum += each.all.load;
  const double fair = sum / static_cast<double>(bins.load.size());
  std::set<std::size_t> counts{0};
  for (const double least : {fair, fair / 2, fair / 4}) {
    std::size_t count = 0;
    while (count < most && groups[order[count]].all.load > least) ++count;
    counts.insert(count);
  }
  for (std::size_t part = 1; part <= most_parts; ++part) counts.insert(most * part / most_parts);
  return counts;
}

/// Largest load and longest shard that no packing can be below.
Item least_of(std::span<const GroupedItem> items, const Bins& bins) {
  Item sum;
  Item largest;
  for (std::size_t bin = 0; bin < bins.load.size(); ++bin) {
    sum = sum + Item{bins.load[bin], bins.elements[bin]};
    largest.load = std::max(largest.load, bins.load[bin]);
    largest.elements = std::max(largest.elements, bins.elements[bin]);
  }
  for (const auto& each : items) {
    sum = sum + each.item;
    largest.load = std::max(largest.load, each.item.load);
    largest.elements = std::max(largest.elements, each.item.elements);
  }
  const auto count = static_cast<std::int64_t>(bins.load.size());
  return {std::max(largest.load, sum.load / static_cast<double>(count)),
          std::max(largest.elements, (sum.elements + count - 1) / count)};
}

}  // namespace

std::vector<Placed> pack_groups(std::span<const GroupedItem> items, Bins& bins) {
  TRIREME_EXPECT(bins.elements.size() == bins.load.size(), "bins are shards");
  if (items.empty()) return {};
  const auto least = least_of(items, bins);
  const auto is_least = [&](const Packing& packing) {
    return packing.largest_load() <= least.load * (1 + 1e-9) && packing.longest() <= least.elements;
  };
  Packing best(bins, items.size());
  bool found = false;
  for (const auto by :
       {DividedFirst::most_load, DividedFirst::most_uneven, DividedFirst::last_alone}) {
    const auto groups = groups_of(items, by);
    const auto order = order_of(groups, by);
    // Where there are more bins than groups, many divided ones are best at once.
    const auto counts = counts_of(groups, order, bins);
    for (auto count = counts.rbegin(); count != counts.rend(); ++count) {
      if (found && is_least(best)) break;
      Packing packing(bins, items.size());
      packing.run(groups, order, *count);
      if (!found || packing.better_than(best)) best = std::move(packing);
      found = true;
    }
  }
  bins = best.bins();
  return best.placed();
}

std::vector<Placed> pack_all_groups(std::span<const GroupedItem> items, Bins& bins) {
  auto packed = bins;
  auto placed = pack_groups(items, packed);
  if (items.empty()) return placed;
  const auto load = *std::max_element(packed.load.begin(), packed.load.end());
  const auto longest = *std::max_element(packed.elements.begin(), packed.elements.end());
  const auto room = std::max(bins.most_elements.front(), longest);
  auto filled = complete_bins(items, bins.load.size(), {load, room});
  if (!filled) {
    bins = std::move(packed);
    return placed;
  }
  for (std::size_t at = 0; at < items.size(); ++at) {
    bins.load[(*filled)[at].bin] += items[at].item.load;
    bins.elements[(*filled)[at].bin] += items[at].item.elements;
  }
  return *std::move(filled);
}

}  // namespace trireme::ownership
