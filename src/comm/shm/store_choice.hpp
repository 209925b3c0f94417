// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/shm/streaming_copy.hpp"

#include <array>
#include <cstddef>
#include <functional>

namespace trireme::comm {

/// Kind of store by the size of a group's data: data that fit the caches which the members share
/// may be faster with another kind than data that do not.
struct StoreChoice {
  Storing small = Storing::ordinary;
  Storing large = Storing::ordinary;

  /// Smallest size that counts as large.
  static constexpr std::size_t large_bytes = std::size_t{1} << 20;
  Storing of(std::size_t total_bytes) const { return total_bytes < large_bytes ? small : large; }
};

/// Seconds of the slowest member with each kind of store, indexed by Storing.
using StoreSeconds = std::array<float, 2>;

/// Faster kind of store for an array of each size, by `seconds_of(bytes)`.
StoreChoice faster_stores(const std::function<StoreSeconds(std::size_t bytes)>& seconds_of);

/// Assignment of cores: one core for each rank of the node, or fewer.
enum class CoreSharing { own, shared };

/// Size from which on arrays of a group of `ranks` are in no cache when they are used next, so that
/// they need not be read into one before they are overwritten.
std::size_t beyond_caches(int ranks);

}  // namespace trireme::comm
