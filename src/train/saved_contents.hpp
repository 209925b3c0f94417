// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/contents.hpp"
#include "trireme/engine/engine.hpp"

#include <span>
#include <string>

namespace trireme::train {

/// Where a checkpoint holds the state of a run with this layout: each bucket of each stage and
/// tensor-parallel rank is one of the checkpoint for each kind of state, cut among the
/// data-parallel ranks as ZeRO cuts it. A pure function, the same for options of any rank. The
/// prefixes are engine::Engine::state_prefixes().
checkpoint::Contents saved_contents(const engine::EngineOptions& options,
                                    std::span<const std::string> prefixes);

/// This rank's shards of all buckets of those contents that have its file, in their order; on the
/// engine's device.
std::vector<device::Tensor> saved_shards(engine::Engine& engine);

}  // namespace trireme::train
