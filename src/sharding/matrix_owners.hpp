// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/sharding/sharding.hpp"

#include <cstdint>
#include <vector>

namespace trireme::sharding {

struct OwnedShards {
  /// [data-parallel rank]: its shards, where matrices have owners among tensor-parallel ranks.
  std::vector<Updates> shards;
  /// Elements of state of owners that options.rank has of a shard, at most.
  std::int64_t state_elements = 0;
};

/// The shards of all data-parallel ranks, with a rule that updates matrices whole.
OwnedShards owned_shards(const Options& options, const model::StageParameters& stage);

}  // namespace trireme::sharding
