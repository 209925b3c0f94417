#include "device/cuda/stream.hpp"

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

Event Event::make() {
  cudaEvent_t raw = nullptr;
  check(cudaEventCreateWithFlags(&raw, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  Event event;
  event.handle_ = base::UniqueHandle<EventTraits>::adopt(raw);
  return event;
}

TimedEvent TimedEvent::make() {
  cudaEvent_t raw = nullptr;
  check(cudaEventCreate(&raw), "cudaEventCreate");
  TimedEvent event;
  event.handle_ = base::UniqueHandle<EventTraits>::adopt(raw);
  return event;
}

double TimedEvent::seconds_since(const TimedEvent& earlier) const {
  EventView(handle_.get()).wait();
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, earlier.handle_.get(), handle_.get()),
        "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
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

Stream Stream::make_urgent() {
  int least = 0;
  int most = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &most), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t raw = nullptr;
  check(cudaStreamCreateWithPriority(&raw, cudaStreamNonBlocking, most),
        "cudaStreamCreateWithPriority");
  Stream stream;
  stream.handle_ = base::UniqueHandle<StreamTraits>::adopt(raw);
  return stream;
}

}  // namespace trireme::device::cuda
