// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ownership/packing/packing.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace trireme::ownership {

/// Two bins whose items may be divided anew.
struct Pair {
  /// Without the items.
  double load[2] = {};
  /// Without the items; most_elements bounds each, unless both lie in one shard.
  std::int64_t elements[2] = {};
  std::int64_t most_elements[2] = {};
};

/// The items of the first bin in the division with the smallest larger load, if that is
/// below `load`: all divisions are tried, equal items counting as one kind. None if there is no
/// better one, or if there are too many.
std::optional<std::vector<bool>> divide_anew(std::span<const Item> items, const Pair& pair,
                                             double load);

}  // namespace trireme::ownership
