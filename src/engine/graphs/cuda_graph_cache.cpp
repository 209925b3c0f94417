// SPDX-License-Identifier: Apache-2.0
#include "cuda_graph_cache.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include <algorithm>

namespace trireme::engine {

CudaGraphCache::Entry* CudaGraphCache::entry_of(const Key& key) {
  if (!reason_.empty()) return nullptr;
  if (const auto found = entries_.find(key); found != entries_.end()) return &found->second;
  if (entries_.size() < most_keys_) return &entries_[key];
  refuse(base::format("more than {} different parts: buffers keep changing", most_keys_));
  return nullptr;
}

bool CudaGraphCache::capture(Entry& entry, const Act& body) {
  std::vector<Segment> segments;
  capturing_ = &segments;
  try {
    device_.begin_capture();
    body();
    end_graph();
    capturing_ = nullptr;
  } catch (const base::Error& error) {
    capturing_ = nullptr;
    device_.abandon_capture();
    refuse(error.what());
    return false;
  }
  ++captured_;
  graphs_ += static_cast<std::size_t>(
      std::count_if(segments.begin(), segments.end(),
                    [](const Segment& segment) { return segment.graph != nullptr; }));
  entry.segments = std::move(segments);
  return true;
}

void CudaGraphCache::end_graph() {
  auto graph = device_.end_capture();
  if (!graph->is_empty()) {
    capturing_->push_back({std::move(graph), {}});
  } else if (capturing_->empty()) {
    capturing_->emplace_back();
  }
}

void CudaGraphCache::break_graph(Act act) {
  TRIREME_EXPECT(capturing(), "only captures have graph breaks");
  end_graph();
  capturing_->back().acts.push_back(std::move(act));
  device_.begin_capture();
}

void CudaGraphCache::launch(const Entry& entry) {
  for (const auto& segment : entry.segments) {
    if (segment.graph) segment.graph->launch();
    for (const auto& act : segment.acts) act();
  }
  ++launched_;
}

void CudaGraphCache::note_growth(std::size_t taken_before) {
  // Other programs may free memory meanwhile.
  const auto taken = device_.taken_bytes();
  if (taken > taken_before) bytes_ += taken - taken_before;
}

void CudaGraphCache::refuse(const std::string& reason) {
  reason_ = reason;
  // Synchronize: work under way on the device may come from a graph, and graphs end with this
  // object.
  base::log::local::warning("engine",
                            "micro-batches are issued kernel by kernel, not as CUDA graphs ({}); "
                            "numerics.cuda_graphs = false silences this",
                            reason);
}

}  // namespace trireme::engine
