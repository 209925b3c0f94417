// SPDX-License-Identifier: Apache-2.0
#include "ownership/packing/group_kinds.hpp"

#include <algorithm>
#include <utility>

namespace trireme::ownership {
namespace {

std::size_t item_kind(GroupKinds& kinds, const Item& item) {
  const auto known = std::find(kinds.items.begin(), kinds.items.end(), item);
  const auto kind = static_cast<std::size_t>(known - kinds.items.begin());
  if (known == kinds.items.end()) {
    kinds.items.push_back(item);
    kinds.item_counts.push_back(0);
  }
  ++kinds.item_counts[kind];
  return kind;
}

}  // namespace

GroupKinds group_kinds(std::span<const GroupedItem> items) {
  GroupKinds kinds;
  for (std::size_t at = 0; at < items.size();) {
    const auto first = at;
    GroupKind group;
    group.until.emplace_back();
    for (; at < items.size() && items[at].group == items[first].group; ++at) {
      group.items.push_back(item_kind(kinds, items[at].item));
      group.until.push_back(group.all() + items[at].item);
    }
    auto same = std::find_if(kinds.groups.begin(), kinds.groups.end(),
                             [&](const GroupKind& kind) { return kind.items == group.items; });
    if (same == kinds.groups.end()) same = kinds.groups.insert(same, std::move(group));
    same->members.push_back(first);
  }
  std::stable_sort(
      kinds.groups.begin(), kinds.groups.end(),
      [](const GroupKind& a, const GroupKind& b) { return a.all().load > b.all().load; });
  for (auto& kind : kinds.groups) {
    kind.first_cut = kinds.cuts;
    kinds.cuts += kind.size() - 1;
  }
  return kinds;
}

}  // namespace trireme::ownership
