// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/layout/chunk_buffers.hpp"

#include <vector>

namespace trireme::engine {

/// Chunks of the model that a rank runs: those of its options, or, where data-parallel ranks divide
/// gradients, each unit as one, so that it takes all micro-batches before the next.
struct RunChunks {
  layout::Placement placement;
  std::vector<layout::LayerRange> layers;  ///< [chunk] of the rank's stage
};
RunChunks run_chunks(const model::ModelConfig& model, const sharding::Options& sharding,
                     const ScheduleOptions& schedule);

/// Whether the rank has layers whose attention keeps documents apart.
bool masks_documents(const EngineOptions& options);

/// Actions of these chunks.
layout::Schedule schedule_of(const model::ModelConfig& model, const sharding::Options& sharding,
                             const ScheduleOptions& schedule);

}  // namespace trireme::engine
