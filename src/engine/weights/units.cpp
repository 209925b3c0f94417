// SPDX-License-Identifier: Apache-2.0
#include "units.hpp"

#include "trireme/base/contract.hpp"

#include <algorithm>

namespace trireme::engine {

using Kind = model::Place::Kind;
using model::Place;

namespace {

/// [place]: its buckets, in the order of the model.
std::map<Place, std::vector<std::size_t>> buckets_of_places(const model::StageParameters& stage) {
  std::map<Place, std::vector<std::size_t>> places;
  for (std::size_t index = 0; index < stage.fused_parameters().size(); ++index) {
    auto& buckets = places[stage.fused_parameters()[index].place];
    const auto own = stage.flat().buckets_of_tensor(index);
    for (auto each = own.begin; each < own.end; ++each) {
      const auto bucket = static_cast<std::size_t>(each);
      if (buckets.empty() || buckets.back() < bucket) buckets.push_back(bucket);
    }
  }
  return places;
}

}  // namespace

Units::Units(const sharding::Sharding& sharding) : sharding_(sharding) {
  places_.resize(sharding.stage().flat().buckets.size());
  const auto buckets = buckets_of_places(sharding.stage());
  place_layers(buckets);
  place_vocabulary(buckets);
  note_neighbours();
}

std::int64_t Units::elements_of(const std::vector<std::size_t>& buckets) const {
  std::int64_t elements = 0;
  for (const auto bucket : buckets) elements += sharding_.stage().flat().buckets[bucket].size();
  return elements;
}

std::int64_t Units::add(const Place& place, const std::vector<std::size_t>& buckets,
                        std::int64_t begin) {
  auto& unit = units_.emplace_back(Unit{place, buckets, {begin, begin}});
  for (const auto bucket : buckets) {
    TRIREME_ENSURE(places_[bucket].size() == 0, "a bucket is of one unit");
    const auto size = sharding_.stage().flat().buckets[bucket].size();
    places_[bucket] = {unit.ring.end, unit.ring.end + size};
    unit.ring.end += size;
  }
  units_of_place_[place].push_back(units_.size() - 1);
  size_ = std::max(size_, unit.ring.end);
  return unit.ring.end;
}

/// The last layer lies first: while it computes in forward, the head is gathered behind it.
void Units::place_layers(const Buckets& buckets) {
  std::vector<const Buckets::value_type*> layers;
  for (const auto& each : buckets) {
    if (each.first.kind == Kind::layer) layers.push_back(&each);
  }
  std::reverse(layers.begin(), layers.end());
  std::int64_t largest_first = 0;
  for (std::size_t index = 0; index < layers.size(); index += 2) {
    largest_first = std::max(largest_first, elements_of(layers[index]->second));
  }
  for (std::size_t index = 0; index < layers.size(); ++index) {
    add(layers[index]->first, layers[index]->second, index % 2 == 0 ? 0 : largest_first);
  }
}

void Units::place_vocabulary(const Buckets& buckets) {
  const Place head{Kind::head, 0};
  const bool head_reads_table = buckets.contains(head) && !sharding_.stage().holds("head.weight");
  const bool stays = head_reads_table || !sharding_.options().takes_units_in_turn();
  std::int64_t begin = stays ? size_ : 0;
  for (const auto& [place, all] : buckets) {
    if (place.kind == Kind::layer) continue;
    auto end = begin;
    for (const auto bucket : all) end = add(place, {bucket}, end);
    if (head_reads_table) begin = end;
  }
  if (!head_reads_table) return;
  auto& of_head = units_of_place_[head];
  const auto& table = units_of_place_[{Kind::embedding, 0}];
  of_head.insert(of_head.begin(), table.begin(), table.end());
}

void Units::note_neighbours() {
  beside_.resize(units_.size());
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    for (std::size_t other = 0; other < units_.size(); ++other) {
      if (other != unit && overlap(units_[unit].ring, units_[other].ring)) {
        beside_[unit].push_back(other);
      }
    }
  }
}

const std::vector<std::size_t>& Units::of(const Place& place) const {
  static const std::vector<std::size_t> none;
  const auto found = units_of_place_.find(place);
  return found == units_of_place_.end() ? none : found->second;
}

std::vector<model::StageParameters::Region> Units::regions(const Memory& parameters,
                                                           const Memory& gradients) const {
  const auto& buckets = sharding_.stage().flat().buckets;
  std::vector<model::StageParameters::Region> regions;
  std::vector<std::int64_t> in_ring;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    // Matrices may lie in several neighbouring buckets of their place.
    const bool goes_on = bucket > 0 && places_[bucket].begin == places_[bucket - 1].end;
    if (!goes_on) {
      regions.emplace_back().range.begin = buckets[bucket].begin;
      in_ring.push_back(places_[bucket].begin);
    }
    regions.back().range.end = buckets[bucket].end;
  }
  for (std::size_t index = 0; index < regions.size(); ++index) {
    auto& region = regions[index];
    const auto of = [&](const Memory& memory) {
      const auto begin = memory.extent == Extent::ring ? in_ring[index] : region.range.begin;
      return memory.values.slice(0, begin, region.range.size());
    };
    region.parameters = of(parameters);
    region.gradients = of(gradients);
  }
  return regions;
}

}  // namespace trireme::engine
