// SPDX-License-Identifier: Apache-2.0
#include "graphs.hpp"

#include "graph_breaks.hpp"

namespace trireme::engine {

Graphs::Graphs(CudaGraphs wanted, comm::ProcessGroup& tensor, device::Device& device,
               std::size_t parts)
    : wanted_(wanted == CudaGraphs::yes),
      tensor_(tensor),
      cache_(wanted_ && device.can_capture() ? std::make_unique<CudaGraphCache>(device, parts)
                                             : nullptr),
      breaks_(cache_ ? graph_breaks(tensor, *cache_) : nullptr) {}

Engine::GraphUse Graphs::graph_use() const {
  if (!cache_) return {};
  return {cache_->captured(), cache_->graphs(), cache_->launched(), cache_->bytes()};
}

}  // namespace trireme::engine
