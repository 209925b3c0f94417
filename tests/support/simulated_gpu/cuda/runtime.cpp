// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_gpu/cuda/runtime.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace trireme::testing::simulated_gpu {
namespace {

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Never destroyed: what lives until the process ends may still give its memory back.
Runtime*& present() {
  static Runtime* runtime = nullptr;
  return runtime;
}

}  // namespace

Thread& this_thread() {
  thread_local Thread thread;
  return thread;
}

std::mutex& runtime_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

Runtime::Runtime(const Settings& settings)
    : settings_(settings),
      scheduler_(std::make_shared<Scheduler>(
          Haste{static_cast<Haste::Kind>(settings.seed % 3), settings.seed}, memory_)),
      executor_(settings.seed) {
  executor_.use(*kernel_memory_);
  for (int gpu = 0; gpu < settings.gpus; ++gpu) {
    legacy_.push_back(std::make_unique<CUstream_st>());
    legacy_.back()->gpu = gpu;
    legacy_.back()->queue = std::make_shared<Stream>(scheduler_);
  }
}

Runtime& Runtime::here() {
  auto*& runtime = present();
  if (runtime == nullptr) {
    runtime = new Runtime({number_of("TRIREME_SIMULATED_GPU_SEED", 1),
                           static_cast<int>(number_of("TRIREME_SIMULATED_GPUS", 1))});
  }
  return *runtime;
}

void Runtime::restart(const Settings& settings) {
  const std::lock_guard<std::mutex> lock(runtime_mutex());
  present() = new Runtime(settings);
  this_thread() = {};
}

template <typename Part>
Part& Runtime::find(const Owned<Part>& all, const Part* handle) {
  const auto place =
      std::find_if(all.begin(), all.end(), [&](const auto& part) { return part.get() == handle; });
  expect(place != all.end(), cudaErrorInvalidResourceHandle);
  return **place;
}

template <typename Part>
void Runtime::erase(Owned<Part>& all, const Part* part) {
  std::erase_if(all, [&](const auto& owner) { return owner.get() == part; });
}

template CUevent_st& Runtime::find(const Owned<CUevent_st>&, const CUevent_st*);
template void Runtime::erase(Owned<CUevent_st>&, const CUevent_st*);
template void Runtime::erase(Owned<CUgraph_st>&, const CUgraph_st*);
template void Runtime::erase(Owned<CUgraphExec_st>&, const CUgraphExec_st*);

CUstream_st& Runtime::stream_of(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) {
    return *legacy_.at(static_cast<std::size_t>(this_thread().gpu));
  }
  auto& stream = find(streams_, handle);
  expect(!stream.destroyed, cudaErrorInvalidResourceHandle);
  return stream;
}

CUevent_st& Runtime::event_of(cudaEvent_t handle) {
  return find(events_, handle);
}

CUgraph_st& Runtime::graph_of(cudaGraph_t handle) {
  return find(graphs_, handle);
}

CUgraphExec_st& Runtime::executable_of(cudaGraphExec_t handle) {
  return find(executables_, handle);
}

CUstream_st* Runtime::add_stream(bool waits_for_legacy) {
  streams_.push_back(std::make_unique<CUstream_st>());
  auto& stream = *streams_.back();
  stream.gpu = this_thread().gpu;
  stream.waits_for_legacy = waits_for_legacy;
  stream.queue = std::make_shared<Stream>(scheduler_);
  return &stream;
}

void Runtime::destroy(CUstream_st& stream) {
  if (stream.capture) leave(stream);
  stream.destroyed = true;
}

CUevent_st* Runtime::add_event(bool timed) {
  events_.push_back(std::make_unique<CUevent_st>());
  events_.back()->gpu = this_thread().gpu;
  events_.back()->timed = timed;
  return events_.back().get();
}

/// Work of the legacy stream and of streams that wait for it follows what either was told before.
void Runtime::join_legacy(CUstream_st& stream) {
  auto& legacy = *legacy_.at(static_cast<std::size_t>(stream.gpu));
  const auto follow = [&](CUstream_st& other) {
    if (!other.queue->idle()) stream.queue->follow(other.queue->mark());
  };
  if (stream.waits_for_legacy) return follow(legacy);
  if (&stream != &legacy) return;
  for (const auto& other : streams_) {
    if (other->waits_for_legacy && other->gpu == stream.gpu) follow(*other);
  }
}

void Runtime::push(CUstream_st& stream, Work work) {
  if (stream.capture) {
    auto& capture = *stream.capture;
    expect(!capture.spoilt, cudaErrorStreamCaptureInvalidated);
    capture.nodes.push_back({std::move(work), stream.tips});
    stream.tips = {capture.nodes.size() - 1};
    return;
  }
  if (&stream == legacy_.at(static_cast<std::size_t>(stream.gpu)).get()) {
    // Captured streams that wait for it would have to be part of this.
    for (const auto& capture : captures_) {
      if (capture->origin->waits_for_legacy) spoil(*capture, cudaErrorStreamCaptureImplicit);
    }
  }
  join_legacy(stream);
  stream.queue->issue(guarded(std::move(work)));
}

/// A failure breaks the GPU, which then does nothing more.
Work Runtime::guarded(Work work) {
  return [this, work = std::move(work)] {
    if (broken_ != cudaSuccess) return;
    try {
      work();
    } catch (const std::exception& error) {
      broken_ = cudaErrorLaunchFailure;
      fault_ = error.what();
      std::fprintf(stderr, "simulated GPU: %s\n", error.what());
    }
  };
}

void Runtime::run_until(const Marker& marker) {
  const bool passed = marker.run();
  expect(broken_ == cudaSuccess, broken_);
  expect(passed, cudaErrorUnknown);
}

void Runtime::run_all() {
  scheduler_->run_all();
  expect(broken_ == cudaSuccess, broken_);
}

}  // namespace trireme::testing::simulated_gpu
