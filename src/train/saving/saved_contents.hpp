// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/contents.hpp"
#include "trireme/sharding/sharding.hpp"

namespace trireme::train {

/// Where a checkpoint holds the state of a run with this layout: each bucket of each stage and
/// tensor-parallel rank is one of the checkpoint for each kind of state, cut among the
/// data-parallel ranks as ZeRO cuts it (engine::Engine::saved_shards). A pure function, the same
/// whichever rank sees the sharding.
checkpoint::Contents saved_contents(const sharding::Sharding& sharding);

}  // namespace trireme::train
