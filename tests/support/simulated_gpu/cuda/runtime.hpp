// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/simt/executor.hpp"
#include "support/simulated_gpu/cuda/handles.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

/// The simulated GPU under the functions of CUDA's runtime that the product calls, as they are
/// documented. Kernels run on the executor of tests/support/simt.
namespace trireme::testing::simulated_gpu {

/// Settings of the environment (TRIREME_SIMULATED_GPU_SEED, TRIREME_SIMULATED_GPUS), when the
/// runtime is called first.
struct Settings {
  std::uint64_t seed = 1;
  int gpus = 1;
};

/// Error that a call is refused with.
struct Refused {
  cudaError_t code;
};

/// Where kernels find the GPU's memory, which outlives this.
std::unique_ptr<device::simt::AddressSpace> make_kernel_memory(Memory& memory);

/// All that the runtime knows.
class Runtime {
 public:
  /// As documented, a multiprocessor has room for several blocks; few of them keep grids small.
  static constexpr int multiprocessors = 2;
  /// Its compute capability, a Hopper's.
  static constexpr int major = 9;
  static constexpr int minor = 0;
  static constexpr std::size_t total_bytes = std::size_t{140} << 30;
  /// Bytes of the context, which no allocation of the program is.
  static constexpr std::size_t context_bytes = std::size_t{500} << 20;

  /// Bytes of a graph that can be launched, beside all allocations.
  static constexpr std::size_t graph_bytes = std::size_t{16} << 20;

  explicit Runtime(const Settings& settings);
  static Runtime& here();
  /// Forgets everything; for tests of this runtime.
  static void restart(const Settings& settings);

  Memory& memory() { return memory_; }
  device::simt::Executor& executor() { return executor_; }
  int gpus() const { return settings_.gpus; }

  /// Stream of a handle; throws Refused.
  CUstream_st& stream_of(cudaStream_t handle);
  CUevent_st& event_of(cudaEvent_t handle);
  CUgraph_st& graph_of(cudaGraph_t handle);
  CUgraphExec_st& executable_of(cudaGraphExec_t handle);

  CUstream_st* add_stream(bool waits_for_legacy);
  void destroy(CUstream_st& stream);
  CUevent_st* add_event(bool timed);
  void destroy(CUevent_st& event) { erase(events_, &event); }
  CUgraph_st* add_graph(const Capture& capture);
  void destroy(CUgraph_st& graph) { erase(graphs_, &graph); }
  CUgraphExec_st* add_executable(const CUgraph_st& graph);
  std::size_t executables() const { return executables_.size(); }
  void destroy(CUgraphExec_st& executable) { erase(executables_, &executable); }

  /// Tells the stream, or what is captured from it.
  void push(CUstream_st& stream, Work work);
  void begin_capture(CUstream_st& stream, cudaStreamCaptureMode mode);
  /// Null if it was spoilt.
  CUgraph_st* end_capture(CUstream_st& stream);
  void record(CUevent_st& event, CUstream_st& stream);
  void wait(CUstream_st& stream, const CUevent_st& event);
  void launch(const CUgraphExec_st& executable, CUstream_st& stream);

  /// Throws Refused, and spoils captures, where a call could wait for what is being captured.
  void expect_no_capture();
  /// Throws Refused if the stream is captured.
  void expect_not_captured(CUstream_st& stream);

  // The GPU works.
  void run_until(const Marker& marker);
  void run_all();
  void run_some() { scheduler_->run_some(); }

  /// Failure that broke the GPU for good; cudaSuccess: none.
  cudaError_t broken() const { return broken_; }
  const std::string& fault() const { return fault_; }

 private:
  template <typename Part>
  using Owned = std::vector<std::unique_ptr<Part>>;
  template <typename Part>
  static Part& find(const Owned<Part>& all, const Part* handle);
  template <typename Part>
  static void erase(Owned<Part>& all, const Part* part);
  Work guarded(Work work);
  std::vector<std::size_t> order_of(const std::vector<Node>& nodes);
  void join_legacy(CUstream_st& stream);
  void leave(CUstream_st& stream);
  [[noreturn]] static void spoil(Capture& capture, cudaError_t code);

  Settings settings_;
  Memory memory_;
  std::shared_ptr<Scheduler> scheduler_;
  std::unique_ptr<device::simt::AddressSpace> kernel_memory_ = make_kernel_memory(memory_);
  device::simt::Executor executor_;
  Owned<CUstream_st> legacy_;
  Owned<CUstream_st> streams_;
  Owned<CUevent_st> events_;
  Owned<CUgraph_st> graphs_;
  Owned<CUgraphExec_st> executables_;
  std::vector<std::shared_ptr<Capture>> captures_;
  cudaError_t broken_ = cudaSuccess;
  std::string fault_;
};

/// State of a thread.
struct Thread {
  int gpu = 0;
  cudaError_t last_error = cudaSuccess;
  /// Runs a function that the runtime called.
  bool in_host_function = false;
};
Thread& this_thread();

/// Whether the seed's order of things is still the one that its runs had: one call at a time.
std::mutex& runtime_mutex();

/// A function of the runtime: body(runtime), whose Refused is its code. Any failure is remembered.
template <typename Body>
cudaError_t call(const Body& body) {
  auto& thread = this_thread();
  auto code = cudaErrorNotPermitted;
  if (!thread.in_host_function) {
    const std::lock_guard<std::mutex> lock(runtime_mutex());
    auto& runtime = Runtime::here();
    code = runtime.broken();
    try {
      if (code == cudaSuccess) body(runtime);
      code = runtime.broken();
    } catch (const Refused& refused) {
      code = refused.code;
    }
  }
  if (code != cudaSuccess && code != cudaErrorNotReady) thread.last_error = code;
  return code;
}

inline void expect(bool condition, cudaError_t code) {
  if (!condition) throw Refused{code};
}

}  // namespace trireme::testing::simulated_gpu
