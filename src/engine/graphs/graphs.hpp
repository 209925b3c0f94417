// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"

#include "cuda_graph_cache.hpp"

#include <memory>

namespace trireme::engine {

/// CUDA graphs of a rank's micro-batches: whether there are any, and what runs as one.
class Graphs {
 public:
  /// `tensor` outlives this.
  Graphs(const EngineOptions& options, comm::ProcessGroup& tensor, device::Device& device);

  /// Graphs are asked for: memory has room for their static inputs, whatever the device can do.
  bool wanted() const { return wanted_; }
  /// And the device can record them.
  bool made() const { return cache_ != nullptr; }

  /// Tensor-parallel group for layers: its collectives break graphs, where there are any.
  comm::ProcessGroup& tensor() const { return breaks_ ? *breaks_ : tensor_; }

  /// Issues the work of `body`: as a graph once it has been seen with this key, else as it is.
  template <typename Body>
  void run(const CudaGraphCache::Key& key, const Body& body) {
    if (cache_) {
      cache_->run(key, body);
    } else {
      body();
    }
  }

  Engine::GraphUse graph_use() const;

 private:
  bool wanted_;
  comm::ProcessGroup& tensor_;
  std::unique_ptr<CudaGraphCache> cache_;
  std::unique_ptr<comm::ProcessGroup> breaks_;
};

}  // namespace trireme::engine
