// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/sharding/sharding.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace trireme::engine {

/// Part of a stage whose weights data-parallel ranks gather at once, where each holds its shards
/// alone: a layer, a block of the table's or the head's vocabulary.
struct Unit {
  model::Place place;
  std::vector<std::size_t> buckets;
  /// Memory in the ring that it takes turns in.
  layout::FlatRange ring{};
};

/// Units of a stage, and the ring that holds them while they are gathered, each always in the same
/// place. Layers take turns in two, so that one comes while another computes. Where a unit takes
/// all micro-batches before the next, the table, and the head, lie over both: no layer computes
/// meanwhile. In other schedules they lie behind the layers, and where the head reads the table,
/// whose gradient begins there and ends with the step, behind each other.
class Units {
 public:
  /// `sharding` divides parameters or gradients.
  explicit Units(const sharding::Sharding& sharding);

  const std::vector<Unit>& all() const { return units_; }
  /// Units, by their index, in which the weights lie that a place of the model reads.
  const std::vector<std::size_t>& of(const model::Place& place) const;
  /// Others that have some of a unit's memory in turn.
  const std::vector<std::size_t>& beside(std::size_t unit) const { return beside_[unit]; }
  /// Elements of the ring.
  std::int64_t size() const { return size_; }
  /// Where a bucket's elements lie in the ring.
  layout::FlatRange place_of(std::size_t bucket) const { return places_[bucket]; }
  /// Memory of all of a stage's elements, or of the ring.
  enum class Extent { whole, ring };
  struct Memory {
    device::Tensor values;
    Extent extent;
  };
  /// Regions of the stage's flat buffers, where these memories have them.
  std::vector<model::StageParameters::Region> regions(const Memory& parameters,
                                                      const Memory& gradients) const;

 private:
  using Buckets = std::map<model::Place, std::vector<std::size_t>>;
  std::int64_t elements_of(const std::vector<std::size_t>& buckets) const;
  /// A unit at an element of the ring; returns the one behind it.
  std::int64_t add(const model::Place& place, const std::vector<std::size_t>& buckets,
                   std::int64_t begin);
  void place_layers(const Buckets& buckets);
  void place_vocabulary(const Buckets& buckets);
  void note_neighbours();

  const sharding::Sharding& sharding_;
  std::vector<Unit> units_;
  std::map<model::Place, std::vector<std::size_t>> units_of_place_;
  std::vector<std::vector<std::size_t>> beside_;  // [unit]
  std::vector<layout::FlatRange> places_;         // [bucket]
  std::int64_t size_ = 0;
};

/// Whether two ranges have an element in common.
inline bool overlap(layout::FlatRange a, layout::FlatRange b) {
  return a.begin < b.end && b.begin < a.end;
}

}  // namespace trireme::engine
