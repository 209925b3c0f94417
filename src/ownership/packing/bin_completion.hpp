// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ownership/packing/packing.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace trireme::ownership {

/// Places in empty bins that are alike, such that the largest load is below most.load, and no bin
/// has more than most.elements. A group lies in one bin or in two neighbours. None if none is found
/// within a bounded time.
///
/// For loads of few kinds, of which a bin holds a handful: bins are filled one after the other,
/// each with what is worth most among all that fits. What an item is worth is learned: items that
/// were left over, or lay in bins with room to spare, are worth more in the next pass (sequential
/// value correction, Mukhacheva et al. 2000; Belov and Scheithauer 2007).
std::optional<std::vector<Placed>> fill_bins(std::span<const GroupedItem> items, std::size_t bins,
                                             Item most);

}  // namespace trireme::ownership
