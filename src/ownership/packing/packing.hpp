// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace trireme::ownership
