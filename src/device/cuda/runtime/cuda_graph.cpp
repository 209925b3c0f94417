// CUDA graphs: what the device's stream is told is captured, and issued again as one.
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

using Graph = base::UniqueHandle<GraphTraits>;
using GraphExec = base::UniqueHandle<GraphExecTraits>;

class CudaRecording final : public Recording {
 public:
  CudaRecording(const CudaDevice& device, GraphExec graph)
      : device_(device), graph_(std::move(graph)) {}
  void issue() override {
    device_.use();
    check(cudaGraphLaunch(graph_.get(), device_.stream().raw()), "cudaGraphLaunch");
  }

 private:
  const CudaDevice& device_;
  GraphExec graph_;
};

}  // namespace

void CudaDevice::begin_recording() {
  use();
  // Of this thread alone: NCCL's own threads allocate whenever they like.
  check(cudaStreamBeginCapture(stream().raw(), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  recording_ = true;
}

std::unique_ptr<device::Recording> CudaDevice::end_recording() {
  recording_ = false;
  cudaGraph_t raw = nullptr;
  check(cudaStreamEndCapture(stream().raw(), &raw), "cudaStreamEndCapture");
  const auto graph = Graph::adopt(raw);
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph.get(), 0), "cudaGraphInstantiate");
  return std::make_unique<CudaRecording>(*this, GraphExec::adopt(executable));
}

void CudaDevice::abandon_recording() {
  if (!recording_) return;
  recording_ = false;
  cudaGraph_t raw = nullptr;
  // A capture that was spoilt ends in an error, which the caller knows already.
  if (cudaStreamEndCapture(stream().raw(), &raw) == cudaSuccess && raw != nullptr) {
    const auto graph = Graph::adopt(raw);
  }
  static_cast<void>(cudaGetLastError());
}

}  // namespace trireme::device::cuda
