// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/model/stage_parameters.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::engine {

/// Elements that a rank updates: with ZeRO level 1 its shard of each bucket, else all.
struct Ownership {
  std::vector<optim::Segment> segments;
  optim::StateSizes sizes;
  /// [bucket]: all that the rank updates of it, as a run of state.
  std::vector<optim::Segment> buckets;
};

/// What the segments of a bucket are.
optim::Content content_of(const model::StageParameters& stage, std::size_t bucket);

/// Name of the parameter that a segment of a matrix is of.
const std::string& matrix_name(const model::StageParameters& stage, const optim::Segment& segment);

/// Tensor-parallel ranks divide the matrices in a data-parallel rank's shards by their work, at
/// every ZeRO level.
Ownership ownership_of(const EngineOptions& options, const model::StageParameters& stage,
                       int data_rank);

}  // namespace trireme::engine
