// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ownership/packing/packing.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace trireme::ownership {

/// Places of items in ragged shards, which lie in the order of the bins in each bucket. A group may
/// lie in any bins if these ascend from item to item, and nothing of its bucket lies between them.
/// `bin_of`: bins of items packed one by one, which were alike and empty before. Bins are numbered
/// anew, and equal items exchange theirs, which changes no load, until all groups lie so. None
/// where no exchange leads there.
std::optional<std::vector<Placed>> order_groups(std::span<const GroupedItem> items,
                                                const std::vector<std::size_t>& bin_of);

}  // namespace trireme::ownership
