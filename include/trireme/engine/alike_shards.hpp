// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"

#include <vector>

namespace trireme::engine {

/// [data-parallel rank]: the first of those beside options.rank whose step needs the same memory.
/// They differ where owners of whole matrices divide state among them.
std::vector<int> alike_shards(const EngineOptions& options);

}  // namespace trireme::engine
