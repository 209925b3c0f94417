// SPDX-License-Identifier: Apache-2.0
#include "graphs.hpp"

#include "graph_breaks.hpp"

namespace trireme::engine {

using layout::Axis;

Graphs::Graphs(CudaGraphs wanted, const comm::AxisGroups& groups, device::Device& device,
               std::size_t parts)
    : wanted_(wanted == CudaGraphs::yes),
      tensor_(groups.on(Axis::tensor)),
      context_(groups.if_any(Axis::context)),
      cache_(wanted_ && device.can_capture() ? std::make_unique<CudaGraphCache>(device, parts)
                                             : nullptr),
      tensor_breaks_(cache_ ? graph_breaks(tensor_, *cache_) : nullptr),
      context_breaks_(cache_ && context_ != nullptr ? graph_breaks(*context_, *cache_) : nullptr) {}

Engine::GraphUse Graphs::graph_use() const {
  if (!cache_) return {};
  return {cache_->captured(), cache_->graphs(), cache_->launched(), cache_->bytes()};
}

}  // namespace trireme::engine
