// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/optim/state.hpp"

#include "units.hpp"

#include <cstddef>
#include <vector>

namespace trireme::engine {

/// Where a rank's gradients lie, f32: what its micro-batches add up to, and what is reduced of
/// that.
struct GradientMemory {
  /// All gradients of the rank; or the ring of its units, where it keeps those of its shards alone.
  device::Tensor terms;
  /// Null where `terms` has all.
  const Units* units = nullptr;
  /// Sums of the rank's shards, those of bucket b at held[b]; in `terms` where that has all.
  optim::FlatValues sums;
  std::vector<optim::Segment> held;

  bool is_divided() const { return units != nullptr; }
  /// Terms of a bucket.
  device::Tensor terms_of(std::size_t bucket, layout::FlatRange range) const {
    const auto place = is_divided() ? units->place_of(bucket) : range;
    return terms.slice(0, place.begin, place.size());
  }
  /// Those of elements of the bucket, which is at `range`.
  device::Tensor terms_of(std::size_t bucket, layout::FlatRange range,
                          layout::FlatRange elements) const {
    return terms_of(bucket, range).slice(0, elements.begin - range.begin, elements.size());
  }
  /// Sums of elements of the bucket that the rank holds.
  device::Tensor sums_of(std::size_t bucket, layout::FlatRange range) const {
    if (!is_divided()) return terms.slice(0, range.begin, range.size());
    const auto& own = held[bucket];
    return sums.of(own).slice(0, range.begin - own.flat.begin, range.size());
  }
};

}  // namespace trireme::engine
