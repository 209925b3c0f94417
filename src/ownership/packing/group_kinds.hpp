// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ownership/packing/packing.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace trireme::ownership {

/// Groups that are alike.
struct GroupKind {
  std::vector<std::size_t> items;    ///< kinds of its items
  std::vector<Item> until;           ///< [items + 1]: sum of those in front
  std::vector<std::size_t> members;  ///< first items of the groups
  std::size_t first_cut = 0;         ///< number of its first cut, among those of all kinds

  std::size_t size() const { return items.size(); }
  const Item& all() const { return until.back(); }
};

struct GroupKinds {
  std::vector<GroupKind> groups;  ///< most load first
  std::vector<Item> items;
  std::vector<int> item_counts;
  std::size_t cuts = 0;
};

GroupKinds group_kinds(std::span<const GroupedItem> items);

}  // namespace trireme::ownership
