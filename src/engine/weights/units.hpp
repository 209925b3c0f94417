// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/sharding/sharding.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trireme::engine {

/// Part of a stage whose weights data-parallel ranks gather at once, where each holds its shards
/// alone: the table, a layer, the head.
struct Unit {
  model::Place place;
  std::vector<std::size_t> buckets;
  /// Memory that it takes turns in.
  std::size_t slot = 0;
  std::int64_t elements = 0;
};

/// Units of a stage, and the slots of a ring that hold them while they are gathered: layers take
/// turns in two, so that one comes while another computes; the table and the head have a third, or,
/// where the head reads the table, one each. A unit is always in the same place.
class Units {
 public:
  /// `sharding` divides parameters.
  explicit Units(const sharding::Sharding& sharding);

  const std::vector<Unit>& all() const { return units_; }
  /// Units, by their index, in which the weights lie that a place of the model reads.
  std::vector<std::size_t> of(const model::Place& place) const;
  std::size_t slot_count() const { return slots_.size(); }
  /// Slot that has this element of the ring.
  std::size_t slot_at(std::int64_t element) const;
  /// Elements of the ring.
  std::int64_t size() const { return slots_.empty() ? 0 : slots_.back().end; }
  /// Where a bucket's elements lie in the ring.
  layout::FlatRange place_of(std::size_t bucket) const { return places_[bucket]; }
  /// Regions of the stage's flat buffers: in a ring of parameters, and in one of gradients or in
  /// all of them.
  enum class Gradients { in_ring, whole };
  std::vector<model::StageParameters::Region> regions(const device::Tensor& parameters,
                                                      const device::Tensor& gradients,
                                                      Gradients kind) const;

 private:
  std::size_t slot_of(const model::Place& place, int layers_before) const;

  const sharding::Sharding& sharding_;
  bool head_reads_table_ = false;
  std::vector<Unit> units_;                // in the order of the model
  std::vector<layout::FlatRange> slots_;   // in the ring
  std::vector<layout::FlatRange> places_;  // [bucket]
};

}  // namespace trireme::engine
