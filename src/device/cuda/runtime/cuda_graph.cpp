// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: work issued to the device's stream is captured, and launched again as one.
#include "device/cuda/runtime/cuda_device.hpp"

namespace trireme::device::cuda {
namespace {

struct GraphTraits {
  using raw_type = cudaGraph_t;
  static raw_type null() { return nullptr; }
  static const char* name() { return "CUDA graph"; }
  static std::optional<std::string> close(raw_type raw) {
    return close_result(cudaGraphDestroy(raw), "cudaGraphDestroy");
  }
};

struct GraphExecTraits {
  using raw_type = cudaGraphExec_t;
  static raw_type null() { return nullptr; }
  static const char* name() { return "executable CUDA graph"; }
  static std::optional<std::string> close(raw_type raw) {
    return close_result(cudaGraphExecDestroy(raw), "cudaGraphExecDestroy");
  }
};

using GraphHandle = base::UniqueHandle<GraphTraits>;
using GraphExec = base::UniqueHandle<GraphExecTraits>;

class CudaGraph final : public CapturedGraph {
 public:
  /// A null graph is an empty one.
  CudaGraph(const CudaDevice& device, GraphExec graph)
      : device_(device), graph_(std::move(graph)) {}
  bool is_empty() const override { return graph_.get() == nullptr; }
  void launch() override {
    if (is_empty()) return;
    device_.use();
    check(cudaGraphLaunch(graph_.get(), device_.stream().raw()), "cudaGraphLaunch");
  }

 private:
  const CudaDevice& device_;
  GraphExec graph_;
};

}  // namespace

void CudaDevice::begin_capture() {
  use();
  // Capture of this thread alone: NCCL's own threads allocate whenever they like.
  check(cudaStreamBeginCapture(stream().raw(), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  capturing_ = true;
}

std::unique_ptr<device::CapturedGraph> CudaDevice::end_capture() {
  capturing_ = false;
  cudaGraph_t raw = nullptr;
  check(cudaStreamEndCapture(stream().raw(), &raw), "cudaStreamEndCapture");
  const auto graph = GraphHandle::adopt(raw);
  std::size_t nodes = 0;
  check(cudaGraphGetNodes(graph.get(), nullptr, &nodes), "cudaGraphGetNodes");
  if (nodes == 0) return std::make_unique<CudaGraph>(*this, GraphExec{});
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph.get(), 0), "cudaGraphInstantiate");
  return std::make_unique<CudaGraph>(*this, GraphExec::adopt(executable));
}

void CudaDevice::abandon_capture() {
  if (!capturing_) return;
  capturing_ = false;
  cudaGraph_t raw = nullptr;
  // A capture that was spoilt ends in an error, which the caller has already.
  if (cudaStreamEndCapture(stream().raw(), &raw) == cudaSuccess && raw != nullptr) {
    const auto graph = GraphHandle::adopt(raw);
  }
  static_cast<void>(cudaGetLastError());
}

}  // namespace trireme::device::cuda
