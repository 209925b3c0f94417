// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"

#include "cuda_graph_cache.hpp"

#include <memory>

namespace trireme::engine {

/// CUDA graphs of a rank's micro-batches, if there are any.
class Graphs {
 public:
  /// The groups outlive this; `parts`: how many a step runs.
  Graphs(CudaGraphs wanted, const comm::AxisGroups& groups, device::Device& device,
         std::size_t parts);

  /// True if graphs are configured: memory has room for their static inputs, even if the device
  /// cannot capture.
  bool wanted() const { return wanted_; }
  /// True if the device can capture them, too.
  bool made() const { return cache_ != nullptr; }

  /// Tensor-parallel group for layers: its collectives break graphs, where there are any.
  comm::ProcessGroup& tensor() const { return tensor_breaks_ ? *tensor_breaks_ : tensor_; }
  /// Likewise of the ranks that divide sequences; null where there are none.
  comm::ProcessGroup* context() const { return context_breaks_ ? context_breaks_.get() : context_; }

  /// Issues the work of `body`: as a graph once it has been seen with this key, else directly.
  template <typename Body>
  void run(const CudaGraphCache::Key& key, const Body& body) {
    if (cache_) {
      cache_->run(key, body);
    } else {
      body();
    }
  }

  /// Does what no graph can hold: now or, while a part is captured, whenever the part runs.
  template <typename Act>
  void outside(const Act& act) {
    if (cache_ && cache_->capturing()) {
      cache_->break_graph(act);
    } else {
      act();
    }
  }

  Engine::GraphUse graph_use() const;

 private:
  bool wanted_;
  comm::ProcessGroup& tensor_;
  comm::ProcessGroup* context_;
  std::unique_ptr<CudaGraphCache> cache_;
  std::unique_ptr<comm::ProcessGroup> tensor_breaks_;
  std::unique_ptr<comm::ProcessGroup> context_breaks_;
};

}  // namespace trireme::engine
