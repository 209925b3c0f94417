// SPDX-License-Identifier: Apache-2.0
// The runtime's functions for streams, events, kernels and graphs.
#include "support/simt/kernel_entry.hpp"
#include "support/simulated_gpu/cuda/runtime.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

namespace {

using namespace trireme::testing::simulated_gpu;
namespace simt = trireme::device::simt;

constexpr int most_priority = -5;

cudaError_t add_stream(cudaStream_t* stream, unsigned flags) {
  return call([&](Runtime& runtime) {
    expect(stream != nullptr && (flags & ~unsigned{cudaStreamNonBlocking}) == 0,
           cudaErrorInvalidValue);
    *stream = runtime.add_stream(flags == cudaStreamDefault);
  });
}

std::string symbol_of(const simt::KernelEntry& entry) {
  Dl_info info{};
  if (::dladdr(entry.code, &info) == 0 || info.dli_sname == nullptr) return "without a name";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), &std::free);
  return name == nullptr ? info.dli_sname : name.get();
}

/// Looking through all symbols takes longer than a small kernel.
const std::string& name_of(const simt::KernelEntry& entry) {
  static std::map<const simt::KernelEntry*, std::string> known;
  auto& name = known[&entry];
  if (name.empty()) name = symbol_of(entry);
  return name;
}

std::int64_t count_of(const dim3& part) {
  return std::int64_t{part.x} * part.y * part.z;
}

void run_host_function(cudaHostFn_t function, void* argument) {
  auto& thread = this_thread();
  thread.in_host_function = true;
  function(argument);
  thread.in_host_function = false;
}

/// Throws Refused where nothing but the end of a capture may follow.
void expect_asked_outside(Runtime& runtime, const CUevent_st& event) {
  if (event.capture && !event.capture->ended) event.capture->spoilt = true;
  expect(!event.capture, cudaErrorCapturedEvent);
  runtime.expect_no_capture();
}

}  // namespace

extern "C" {

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* most) {
  return call([&](Runtime&) {
    if (least != nullptr) *least = 0;
    if (most != nullptr) *most = most_priority;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return add_stream(stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int /*priority*/) {
  return add_stream(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return call([&](Runtime& runtime) {
    expect(handle != nullptr, cudaErrorInvalidResourceHandle);
    runtime.destroy(runtime.stream_of(handle));
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* gpu) {
  return call([&](Runtime& runtime) {
    expect(gpu != nullptr, cudaErrorInvalidValue);
    *gpu = runtime.stream_of(handle).gpu;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call([&](Runtime& runtime) {
    auto& stream = runtime.stream_of(handle);
    runtime.expect_not_captured(stream);
    runtime.expect_no_capture();
    runtime.run_until(stream.queue->mark());
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return call([&](Runtime& runtime) {
    auto& stream = runtime.stream_of(handle);
    runtime.expect_not_captured(stream);
    runtime.expect_no_capture();
    runtime.run_some();
    expect(stream.queue->idle(), cudaErrorNotReady);
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call([](Runtime& runtime) {
    runtime.expect_no_capture();
    runtime.run_all();
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call([&](Runtime& runtime) {
    expect(flags == cudaEventWaitDefault, cudaErrorInvalidValue);
    runtime.wait(runtime.stream_of(stream), runtime.event_of(event));
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&](Runtime& runtime) {
    constexpr unsigned known = cudaEventBlockingSync | cudaEventDisableTiming;
    expect(event != nullptr && (flags & ~known) == 0, cudaErrorInvalidValue);
    *event = runtime.add_event((flags & cudaEventDisableTiming) == 0);
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&](Runtime& runtime) { runtime.destroy(runtime.event_of(event)); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&](Runtime& runtime) {
    runtime.record(runtime.event_of(event), runtime.stream_of(stream));
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return call([&](Runtime& runtime) {
    const auto& event = runtime.event_of(handle);
    expect_asked_outside(runtime, event);
    if (!event.recorded || event.recorded->passed()) return;
    runtime.run_some();
    expect(event.recorded->passed(), cudaErrorNotReady);
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return call([&](Runtime& runtime) {
    const auto& event = runtime.event_of(handle);
    expect_asked_outside(runtime, event);
    if (event.recorded) runtime.run_until(*event.recorded);
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t second) {
  return call([&](Runtime& runtime) {
    const auto& begin = runtime.event_of(first);
    const auto& end = runtime.event_of(second);
    expect(milliseconds != nullptr, cudaErrorInvalidValue);
    expect(begin.timed && end.timed, cudaErrorInvalidResourceHandle);
    expect(!begin.capture && !end.capture, cudaErrorCapturedEvent);
    expect(begin.recorded && end.recorded, cudaErrorInvalidResourceHandle);
    expect(begin.recorded->passed() && end.recorded->passed(), cudaErrorNotReady);
    using Milliseconds = std::chrono::duration<float, std::milli>;
    *milliseconds = Milliseconds(*end.when - *begin.when).count();
  });
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t handle) {
  return call([&](Runtime& runtime) {
    const auto* const entry = simt::entry_of(kernel);
    expect(entry != nullptr, cudaErrorInvalidDeviceFunction);
    const auto blocks = count_of(grid);
    const auto threads = count_of(block);
    expect(blocks > 0 && threads > 0 && threads <= 1024 && grid.y == 1 && grid.z == 1 &&
               grid.x <= 0x7fffffffU && shared_bytes == 0,
           cudaErrorInvalidConfiguration);
    auto& stream = runtime.stream_of(handle);
    expect(stream.gpu == this_thread().gpu, cudaErrorInvalidResourceHandle);
    const auto work = [&runtime, entry, blocks, threads, body = entry->bind(arguments)] {
      runtime.executor().launch(name_of(*entry), blocks, static_cast<int>(threads), body);
    };
    runtime.push(stream, work);
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* argument) {
  return call([&](Runtime& runtime) {
    expect(function != nullptr, cudaErrorInvalidValue);
    runtime.push(runtime.stream_of(handle), [=] { run_host_function(function, argument); });
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call([&](Runtime& runtime) { runtime.begin_capture(runtime.stream_of(handle), mode); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return call([&](Runtime& runtime) {
    const auto& stream = runtime.stream_of(handle);
    expect(status != nullptr, cudaErrorInvalidValue);
    *status = !stream.capture          ? cudaStreamCaptureStatusNone
              : stream.capture->spoilt ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return call([&](Runtime& runtime) {
    expect(graph != nullptr, cudaErrorInvalidValue);
    *graph = nullptr;
    *graph = runtime.end_capture(runtime.stream_of(handle));
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags) {
  return call([&](Runtime& runtime) {
    expect(executable != nullptr && flags == 0, cudaErrorInvalidValue);
    *executable = runtime.add_executable(runtime.graph_of(graph));
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return call([&](Runtime& runtime) {
    expect(nodes == nullptr && count != nullptr, cudaErrorInvalidValue);
    *count = runtime.graph_of(graph).nodes->size();
  });
}

/// Nothing has to go anywhere before a launch.
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t handle) {
  return call([&](Runtime& runtime) {
    runtime.executable_of(executable);
    auto& stream = runtime.stream_of(handle);
    runtime.expect_not_captured(stream);
    runtime.push(stream, [] {});
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call([&](Runtime& runtime) {
    runtime.launch(runtime.executable_of(executable), runtime.stream_of(stream));
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call([&](Runtime& runtime) { runtime.destroy(runtime.executable_of(executable)); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call([&](Runtime& runtime) { runtime.destroy(runtime.graph_of(graph)); });
}

}  // extern "C"
