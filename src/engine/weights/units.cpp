// SPDX-License-Identifier: Apache-2.0
#include "units.hpp"

#include "trireme/base/contract.hpp"

#include <algorithm>
#include <map>

namespace trireme::engine {

using Kind = model::Place::Kind;

namespace {

constexpr std::size_t layer_slots = 2;

/// [place]: its buckets, in the order of the model.
std::map<model::Place, std::vector<std::size_t>> buckets_of_places(
    const model::StageParameters& stage) {
  std::map<model::Place, std::vector<std::size_t>> places;
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
  const auto& stage = sharding.stage();
  head_reads_table_ = !stage.holds("head.weight") && stage.holds("embedding.weight");
  places_.resize(stage.flat().buckets.size());
  std::vector<std::int64_t> sizes;
  int layers = 0;
  for (auto& [place, buckets] : buckets_of_places(stage)) {
    auto& unit = units_.emplace_back(Unit{.place = place, .buckets = std::move(buckets)});
    unit.slot = slot_of(place, layers);
    if (place.kind == Kind::layer) ++layers;
    for (const auto bucket : unit.buckets) {
      TRIREME_ENSURE(places_[bucket].size() == 0, "a bucket is of one unit");
      const auto begin = unit.elements;
      unit.elements += stage.flat().buckets[bucket].size();
      places_[bucket] = {begin, unit.elements};
    }
    sizes.resize(std::max(sizes.size(), unit.slot + 1), 0);
    sizes[unit.slot] = std::max(sizes[unit.slot], unit.elements);
  }
  std::int64_t begin = 0;
  for (const auto size : sizes) {
    slots_.push_back({begin, begin + size});
    begin += size;
  }
  for (const auto& unit : units_) {
    for (const auto bucket : unit.buckets) {
      places_[bucket].begin += slots_[unit.slot].begin;
      places_[bucket].end += slots_[unit.slot].begin;
    }
  }
}

std::size_t Units::slot_of(const model::Place& place, int layers_before) const {
  switch (place.kind) {
    case Kind::layer:
      return static_cast<std::size_t>(layers_before) % layer_slots;
    case Kind::embedding:
      return layer_slots;
    case Kind::head:
      return head_reads_table_ ? layer_slots + 1 : layer_slots;
  }
  return 0;
}

std::vector<std::size_t> Units::of(const model::Place& place) const {
  std::vector<std::size_t> found;
  for (std::size_t index = 0; index < units_.size(); ++index) {
    const auto& here = units_[index].place;
    const bool is_its_table =
        head_reads_table_ && place.kind == Kind::head && here.kind == Kind::embedding;
    if (here == place || is_its_table) found.push_back(index);
  }
  return found;
}

std::size_t Units::slot_at(std::int64_t element) const {
  const auto slot = std::partition_point(slots_.begin(), slots_.end(),
                                         [&](const auto& each) { return each.end <= element; });
  return static_cast<std::size_t>(slot - slots_.begin());
}

std::vector<model::StageParameters::Region> Units::regions(const device::Tensor& parameters,
                                                           const device::Tensor& gradients,
                                                           Gradients kind) const {
  const auto& buckets = sharding_.stage().flat().buckets;
  std::vector<model::StageParameters::Region> regions;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    // Matrices may lie in two neighbouring buckets of their unit.
    const bool goes_on = bucket > 0 && places_[bucket].begin == places_[bucket - 1].end;
    if (!goes_on) regions.emplace_back().range.begin = buckets[bucket].begin;
    regions.back().range.end = buckets[bucket].end;
  }
  for (auto& region : regions) {
    const auto first = std::find_if(buckets.begin(), buckets.end(), [&](const auto& each) {
      return each.begin == region.range.begin;
    });
    const auto begin = places_[static_cast<std::size_t>(first - buckets.begin())].begin;
    region.parameters = parameters.slice(0, begin, region.range.size());
    const auto of_gradients = kind == Gradients::whole ? region.range.begin : begin;
    region.gradients = gradients.slice(0, of_gradients, region.range.size());
  }
  return regions;
}

}  // namespace trireme::engine
