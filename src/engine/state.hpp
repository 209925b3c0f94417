// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/model/stage_parameters.hpp"

#include <cstdint>
#include <vector>

namespace trireme::engine {

/// Elements that a rank updates: with ZeRO level 1 its shard of each bucket, else all.
struct Ownership {
  std::vector<optim::Segment> segments;
  optim::StateSizes sizes;
  /// [bucket]: all that the rank updates of it, as a run of state.
  std::vector<optim::Segment> buckets;
};

Ownership ownership_of(const EngineOptions& options, const model::StageParameters& stage,
                       int data_rank);

}  // namespace trireme::engine
