// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include "cuda_graph_cache.hpp"

#include <memory>

namespace trireme::engine {

/// Group whose operations are graph breaks while a part is captured: started and waited for on the
/// stream whenever the part runs, in the order of all others, with a number, a deadline and peers
/// to name as ever. A part that starts one must therefore wait for it before anything else, and
/// finds a Work that is done. The inner group outlives it.
std::unique_ptr<comm::ProcessGroup> graph_breaks(comm::ProcessGroup& inner, CudaGraphCache& cache);

}  // namespace trireme::engine
