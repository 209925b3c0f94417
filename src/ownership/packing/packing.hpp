// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace trireme::ownership {

/// Largest load over the least that is possible from which no better packing is sought.
inline constexpr double good_over_least = 1.002;

/// No item, bin or kind of group.
inline constexpr std::size_t none = static_cast<std::size_t>(-1);

/// Indivisible work and the memory that goes with it.
struct Item {
  double load = 0;
  std::int64_t elements = 0;

  bool operator==(const Item&) const = default;
  friend Item operator+(const Item& a, const Item& b) {
    return {a.load + b.load, a.elements + b.elements};
  }
  friend Item operator-(const Item& a, const Item& b) {
    return {a.load - b.load, a.elements - b.elements};
  }
  friend Item operator*(const Item& a, int count) { return {a.load * count, a.elements * count}; }
};

/// Bins that take items: ranks.
struct Bins {
  /// So far.
  std::vector<double> load;
  /// Consecutive bins whose elements lie in one shard.
  int bins_per_shard = 1;
  /// So far, of each shard.
  std::vector<std::int64_t> elements;
  /// Most elements of each shard. Exceeded only by what fits nowhere.
  std::vector<std::int64_t> most_elements;

  std::size_t shard_of(std::size_t bin) const {
    return bin / static_cast<std::size_t>(bins_per_shard);
  }
};

/// Index of the bin of each item: longest processing time first (Graham 1969), then moves,
/// exchanges and new divisions of two bins as long as they lower the largest load. Adds to loads
/// and elements.
std::vector<std::size_t> pack(std::span<const Item> items, Bins& bins);

/// Where an item goes, and at which end of its shard it has to lie.
struct Placed {
  enum class End { any, front, back };
  std::size_t bin = 0;
  End end = End::any;
};

/// An item of a group, whose items follow each other without a gap. Groups are ascending.
struct GroupedItem {
  Item item;
  std::size_t group = 0;
  /// Bucket in which the group lies: any two neighbouring bins meet once in each.
  std::size_t bucket = 0;
};

/// Bins of items in groups. A group goes to one bin, or, where that lowers the largest load, to two
/// neighbours: its first items to the back of one, the others to the front of the next. Bins are
/// shards; most_elements grows to what a lone group or half needs.
std::vector<Placed> pack_groups(std::span<const GroupedItem> items, Bins& bins);

/// The same of all groups that there are, in bins that are empty and alike: takes longer, and ends
/// with a lower largest load where there are few kinds of groups.
std::vector<Placed> pack_all_groups(std::span<const GroupedItem> items, Bins& bins);

/// Places in empty bins that are alike, such that the largest load is below most.load, and no bin
/// has more than most.elements. A group lies in one bin or in two neighbours. None if none is found
/// within a bounded time.
///
/// For loads of few kinds, of which a bin holds a handful: bins are filled one after the other,
/// each with the pattern of the most value among all that fit. Prices of items are learned: items
/// that were left over, or lay in bins with room to spare, are dearer in the next pass (sequential
/// value correction, Mukhacheva et al. 2000; Belov and Scheithauer 2007).
std::optional<std::vector<Placed>> complete_bins(std::span<const GroupedItem> items,
                                                 std::size_t bins, Item most);

/// Places of items in ragged shards, which lie in the order of the bins in each bucket. A group may
/// lie in any bins if these ascend from item to item, and nothing of its bucket lies between them.
/// `bin_of`: bins of items packed one by one, which were alike and empty before. Bins are numbered
/// anew, and equal items exchange theirs, which changes no load, until all groups lie so. None
/// where no exchange leads there.
std::optional<std::vector<Placed>> order_groups(std::span<const GroupedItem> items,
                                                const std::vector<std::size_t>& bin_of);

}  // namespace trireme::ownership
