// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include "cuda_graph_cache.hpp"

#include <memory>

namespace trireme::engine {

/// Group whose operations break graphs twice while a part is captured: where they are started, and
/// where the stream waits for them. Both happen whenever the part runs, in the order of all others,
/// with a number, a deadline and peers to name as ever. A part waits for what it starts, on the
/// stream. The inner group outlives it.
std::unique_ptr<comm::ProcessGroup> graph_breaks(comm::ProcessGroup& inner, CudaGraphCache& cache);

}  // namespace trireme::engine
