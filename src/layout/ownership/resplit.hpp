// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "layout/ownership/packing.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace trireme::layout {

/// Two bins whose atoms may be divided anew.
struct Pair {
  /// Without the atoms.
  double load[2] = {};
  int ranks[2] = {1, 1};
  /// Without the atoms; most_elements bounds each, unless both lie in one shard.
  std::int64_t elements[2] = {};
  std::int64_t most_elements[2] = {};
};

/// The atoms of the first bin in the division with the smallest larger load per rank, if that is
/// below `load`: all divisions are tried, equal atoms counting as one kind. None if there is no
/// better one, or if there are too many.
std::optional<std::vector<bool>> divide_anew(std::span<const Atom> atoms, const Pair& pair,
                                             double load);

}  // namespace trireme::layout
