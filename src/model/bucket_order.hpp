// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/model/stage_parameters.hpp"
#include "trireme/ownership/plan.hpp"

#include <cstdint>
#include <span>

/// The order of buckets in a rank's flat buffers.
namespace trireme::model {

/// Fused parameters begin at multiples of this many elements: one cache line of bf16, four of f32.
inline constexpr std::int64_t parameter_alignment = 64;

/// Classes of fused parameters with buckets of their own, in the order of the buffer.
enum class BucketClass { owned, early, deferred_owned, deferred, tied };
inline constexpr BucketClass bucket_classes[] = {BucketClass::owned, BucketClass::early,
                                                 BucketClass::deferred_owned, BucketClass::deferred,
                                                 BucketClass::tied};
BucketClass bucket_class(const FusedParameter& fused);
/// Whether an owner updates each of its matrices whole.
bool has_owners(BucketClass kind);

/// `tail` behind `head` in one buffer.
layout::FlatLayout concatenated(layout::FlatLayout head, const layout::FlatLayout& tail);

/// The buffer of parameters without owners.
layout::FlatLayout flat_of_elements(std::span<const FusedParameter> members, BucketBorders borders,
                                    int shards, std::int64_t bucket_elements);

/// The buffer of a plan, whose pieces are whole tensors; `first_of`: the first tensor of each of
/// `matrices`, behind which its others lie without gaps.
layout::FlatLayout flat_of_owners(std::span<const FusedParameter> matrices,
                                  std::span<const std::size_t> first_of,
                                  const ownership::Plan& plan);

}  // namespace trireme::model
