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
RunChunks run_chunks(const EngineOptions& options);

/// Actions of these chunks.
layout::Schedule schedule_of(const EngineOptions& options);

inline layout::Passes passes_of(Use use) {
  return use == Use::training ? layout::Passes::both : layout::Passes::forward_alone;
}

}  // namespace trireme::engine
