// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/sharding/sharding.hpp"

#include <cstddef>
#include <optional>

namespace trireme::sharding {

/// Content of the segments of a bucket.
optim::Content content_of(const model::StageParameters& stage, std::size_t bucket);

/// Segments that a rank updates if it has the shards of one or of all data-parallel ranks; matrices
/// have no owners among tensor-parallel ranks yet.
Updates collect(const Options& options, const model::StageParameters& stage,
                const std::optional<int>& shard);

}  // namespace trireme::sharding
