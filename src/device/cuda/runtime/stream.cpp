// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/runtime/stream.hpp"

#include <algorithm>

namespace trireme::device::cuda {

DeviceMemory allocate_device(std::size_t bytes) {
  void* raw = nullptr;
  check(cudaMalloc(&raw, bytes), "cudaMalloc");
  return DeviceMemory::adopt(raw);
}

PinnedMemory allocate_pinned(std::size_t bytes) {
  void* raw = nullptr;
  check(cudaHostAlloc(&raw, bytes, cudaHostAllocDefault), "cudaHostAlloc");
  return PinnedMemory::adopt(raw);
}

bool EventView::passed() const {
  const auto code = cudaEventQuery(raw_);
  if (code == cudaErrorNotReady) return false;
  check(code, "cudaEventQuery");
  return true;
}

void EventView::wait() const {
  check(cudaEventSynchronize(raw_), "cudaEventSynchronize");
}

double seconds_between(EventView begin, EventView end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin.raw(), end.raw()), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

Event Event::with(unsigned flags) {
  cudaEvent_t raw = nullptr;
  check(cudaEventCreateWithFlags(&raw, flags), "cudaEventCreateWithFlags");
  Event event;
  event.handle_ = base::UniqueHandle<EventTraits>::adopt(raw);
  return event;
}

Event Event::make() {
  return with(cudaEventDisableTiming);
}

Event Event::make_timed() {
  return with(cudaEventDefault);
}

void StreamView::record(EventView event) const {
  check(cudaEventRecord(event.raw(), raw_), "cudaEventRecord");
}

void StreamView::wait_for(EventView event) const {
  check(cudaStreamWaitEvent(raw_, event.raw(), 0), "cudaStreamWaitEvent");
}

void StreamView::synchronize() const {
  check(cudaStreamSynchronize(raw_), "cudaStreamSynchronize");
}

Stream Stream::make() {
  cudaStream_t raw = nullptr;
  check(cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  Stream stream;
  stream.handle_ = base::UniqueHandle<StreamTraits>::adopt(raw);
  return stream;
}

Stream Stream::make_before_others(Priority priority) {
  int least = 0;
  int most = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &most), "cudaDeviceGetStreamPriorityRange");
  // Lower numbers go first; make() has 0, the last of all.
  const int number = priority == Priority::awaited ? most : std::max(most, -1);
  cudaStream_t raw = nullptr;
  check(cudaStreamCreateWithPriority(&raw, cudaStreamNonBlocking, number),
        "cudaStreamCreateWithPriority");
  Stream stream;
  stream.handle_ = base::UniqueHandle<StreamTraits>::adopt(raw);
  return stream;
}

}  // namespace trireme::device::cuda
