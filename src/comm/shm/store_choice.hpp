// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/shm/streaming_copy.hpp"

#include <array>
#include <cstddef>
#include <functional>

namespace trireme::comm {

/// Which stores a group's data take, by their size: what fits the caches that its members share may
/// want others than what does not.
struct StoreChoice {
  Storing small = Storing::ordinary;
  Storing large = Storing::ordinary;

  /// From here on data count as large.
  static constexpr std::size_t large_bytes = std::size_t{1} << 20;
  Storing of(std::size_t total_bytes) const { return total_bytes < large_bytes ? small : large; }
};

/// How long the slowest member takes with either way, by Storing.
using StoreSeconds = std::array<float, 2>;

/// What is faster for an array of each size, by `seconds_of(bytes)`.
StoreChoice faster_stores(const std::function<StoreSeconds(std::size_t bytes)>& seconds_of);

/// Whether every rank of the node has a core of its own.
enum class CoreSharing { own, shared };

/// From so many bytes on, arrays of a group of `ranks` are in no cache when they are used next, so
/// that they need not be read into one before they are overwritten.
std::size_t beyond_caches(int ranks);

}  // namespace trireme::comm
