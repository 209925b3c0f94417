// SPDX-License-Identifier: Apache-2.0
#include "bucket_order.hpp"

#include "trireme/base/contract.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace trireme::model {

BucketClass bucket_class(const FusedParameter& fused) {
  if (fused.tied) return BucketClass::tied;
  if (fused.deferred) return fused.owned ? BucketClass::deferred_owned : BucketClass::deferred;
  return fused.owned ? BucketClass::owned : BucketClass::early;
}

bool has_owners(BucketClass kind) {
  return kind == BucketClass::owned || kind == BucketClass::deferred_owned;
}

layout::FlatLayout concatenated(layout::FlatLayout head, const layout::FlatLayout& tail) {
  const auto shift = [&head](layout::FlatRange range) {
    return layout::FlatRange{range.begin + head.size, range.end + head.size};
  };
  std::vector<layout::FlatRange> tensors;
  std::vector<layout::FlatRange> buckets;
  for (const auto& range : tail.tensors) tensors.push_back(shift(range));
  for (const auto& range : tail.buckets) buckets.push_back(shift(range));
  head.tensors.insert(head.tensors.end(), tensors.begin(), tensors.end());
  head.buckets.insert(head.buckets.end(), buckets.begin(), buckets.end());
  if (!tail.cuts.empty()) {
    head.cuts.resize(head.buckets.size() - tail.buckets.size());
    head.cuts.insert(head.cuts.end(), tail.cuts.begin(), tail.cuts.end());
  }
  head.size += tail.size;
  return head;
}

namespace {

/// Cuts buckets that are twice as long as they need be, or longer, where shards stay equal.
layout::FlatLayout in_blocks(layout::FlatLayout flat, std::int64_t bucket_elements) {
  const auto unit = flat.shards * flat.alignment;
  const auto block = (bucket_elements + unit - 1) / unit * unit;
  std::vector<layout::FlatRange> buckets;
  for (auto rest : flat.buckets) {
    for (; rest.size() >= 2 * block; rest.begin += block) {
      buckets.push_back({rest.begin, rest.begin + block});
    }
    buckets.push_back(rest);
  }
  flat.buckets = std::move(buckets);
  return flat;
}

}  // namespace

layout::FlatLayout flat_of_elements(std::span<const FusedParameter> members, BucketBorders borders,
                                    int shards, std::int64_t bucket_elements) {
  auto flat = layout::flat_layout({}, shards, bucket_elements, parameter_alignment);
  for (auto begin = members.begin(); begin != members.end();) {
    const auto ends_unit = [place = begin->place](const auto& each) { return each.place != place; };
    const bool by_units = borders == BucketBorders::units;
    const auto end = by_units ? std::find_if(begin, members.end(), ends_unit) : members.end();
    // A tied table of two stages is one bucket, which both reduce alike.
    const bool cuts = by_units && begin->place.kind != Place::Kind::layer && !begin->tied;
    std::vector<std::int64_t> sizes;
    for (; begin != end; ++begin) sizes.push_back(begin->element_count());
    auto own = layout::flat_layout(sizes, shards, bucket_elements, parameter_alignment);
    flat = concatenated(std::move(flat), cuts ? in_blocks(std::move(own), bucket_elements) : own);
  }
  return flat;
}

layout::FlatLayout flat_of_owners(std::span<const FusedParameter> matrices,
                                  std::span<const std::size_t> first_of,
                                  const ownership::Plan& plan) {
  layout::FlatLayout flat;
  flat.shards = plan.data;
  flat.alignment = parameter_alignment;
  flat.size = plan.size();
  std::vector<layout::FlatRange> places(plan.matrices.size(), {0, 0});
  for (const auto& piece : plan.pieces) {
    auto& place = places.at(piece.tensor);
    const auto begin = piece.flat_begin - piece.begin;
    TRIREME_ENSURE(piece.begin == 0 || place.begin == begin, "pieces of a matrix have no gap");
    place = {begin, begin + std::max(place.size(), piece.end)};
  }
  for (std::size_t index = 0; index < matrices.size(); ++index) {
    const auto first = first_of[index];
    const auto end = index + 1 < first_of.size() ? first_of[index + 1] : places.size();
    for (auto at = first + 1; at < end; ++at) {
      TRIREME_ENSURE(places[at].begin == places[at - 1].end, "joined tensors have no gap");
    }
    const auto begin = places[first].begin;
    flat.tensors.push_back({begin, begin + matrices[index].element_count()});
  }
  for (const auto& bucket : plan.buckets) {
    flat.buckets.push_back(bucket.flat);
    if (plan.assignment == ownership::Assignment::padded) continue;
    auto& cuts = flat.cuts.emplace_back(bucket.cuts);
    for (auto& cut : cuts) cut -= bucket.flat.begin;
  }
  return flat;
}

}  // namespace trireme::model
