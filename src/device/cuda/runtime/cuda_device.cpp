// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/runtime/cuda_device.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <deque>

namespace trireme::device::cuda {
namespace {

class Point final : public device::Event::Point {
 public:
  Point(Device& device, StreamView stream) : device_(device), event_(Event::make()) {
    stream.record(event_.view());
  }
  bool passed() override { return event_.view().passed(); }
  void block() override { event_.view().wait(); }
  void* handle() override { return event_.view().raw(); }
  Device& device() override { return device_; }

 private:
  Device& device_;
  Event event_;
};

/// Events of a GPU have nothing but such points.
void let_follow(StreamView stream, const device::Event& event) {
  auto* const point = event.point();
  if (point != nullptr) stream.wait_for(EventView(static_cast<cudaEvent_t>(point->handle())));
}

/// Copies from and to host memory of any kind, in the order of a stream of the thread's GPU; the
/// runtime stages memory that is not pinned.
void move_bytes(void* to, const void* from, std::size_t bytes, cudaMemcpyKind direction,
                StreamView stream) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, bytes, direction, stream.raw()), "cudaMemcpyAsync");
}

class CudaSideStream final : public device::SideStream {
 public:
  CudaSideStream(CudaDevice& device, Priority priority)
      : device_(device), stream_(Stream::make_before_others(priority)) {}
  void* handle() override {
    // The caller is about to call a library that looks at the thread's GPU.
    device_.use();
    return stream_.view().raw();
  }
  void copy_in(const void* from, const Tensor& to) override {
    expect_contiguous(to);
    device_.use();
    move_bytes(to.raw(), from, to.byte_count(), cudaMemcpyHostToDevice, stream_.view());
  }
  void copy_out(const Tensor& from, void* to) override {
    expect_contiguous(from);
    device_.use();
    move_bytes(to, from.raw(), from.byte_count(), cudaMemcpyDeviceToHost, stream_.view());
  }
  void follow(const device::Event& event) override {
    device_.use();
    let_follow(stream_.view(), event);
  }
  device::Event record() override {
    device_.use();
    return device::Event(std::make_unique<Point>(device_, stream_.view()));
  }

 private:
  CudaDevice& device_;
  Stream stream_;
};

class CudaStopwatch final : public device::Stopwatch {
 public:
  explicit CudaStopwatch(const CudaDevice& device) : device_(device) {}
  void start() override { pairs_.push_back({mark(), Event()}); }
  void stop() override { pairs_.back().end = mark(); }
  double take() override {
    double seconds = 0;
    while (!pairs_.empty() && pairs_.front().end.view().passed()) {
      const auto& pair = pairs_.front();
      seconds += seconds_between(pair.begin.view(), pair.end.view());
      pairs_.pop_front();
    }
    return seconds;
  }

 private:
  struct Pair {
    Event begin;
    Event end;
  };
  Event mark() const {
    device_.use();
    auto event = Event::make_timed();
    device_.stream().record(event.view());
    return event;
  }

  const CudaDevice& device_;
  std::deque<Pair> pairs_;
};

Stream stream_on(int gpu) {
  check(cudaSetDevice(gpu), "cudaSetDevice");
  return Stream::make();
}

}  // namespace

std::string bus_id_of(int gpu) {
  std::array<char, 32> text{};
  check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), gpu),
        "cudaDeviceGetPCIBusId");
  std::string bus_id(text.data());
  std::transform(bus_id.begin(), bus_id.end(), bus_id.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return bus_id;
}

CudaDevice::CudaDevice(int gpu)
    : gpu_(gpu), name_("GPU " + bus_id_of(gpu)), stream_(stream_on(gpu)) {}

void CudaDevice::use() const {
  check(cudaSetDevice(gpu_), "cudaSetDevice");
}

Arena CudaDevice::arena(Purpose purpose, std::size_t capacity_bytes) {
  use();
  return Arena::cuda(purpose, capacity_bytes);
}

Arena CudaDevice::staging(Purpose purpose, std::size_t capacity_bytes) {
  use();
  return Arena::pinned(purpose, capacity_bytes);
}

void CudaDevice::copy(const Tensor& from, const Tensor& to) {
  expect_alike(from, to);
  use();
  move_bytes(to.raw(), from.raw(), from.byte_count(), cudaMemcpyDeviceToDevice, stream());
}

void CudaDevice::copy_in(const void* from, const Tensor& to) {
  expect_no_capture("a copy from the host");
  expect_contiguous(to);
  use();
  move_bytes(to.raw(), from, to.byte_count(), cudaMemcpyHostToDevice, stream());
}

void CudaDevice::copy_out(const Tensor& from, void* to) {
  expect_no_capture("a copy to the host");
  expect_contiguous(from);
  use();
  move_bytes(to, from.raw(), from.byte_count(), cudaMemcpyDeviceToHost, stream());
}

device::Event CudaDevice::record() {
  expect_no_capture("an event");
  use();
  return device::Event(std::make_unique<Point>(*this, stream()));
}

void CudaDevice::follow(const device::Event& event) {
  expect_no_capture("an event");
  use();
  let_follow(stream(), event);
}

std::size_t CudaDevice::taken_bytes() {
  use();
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return total - free;
}

std::unique_ptr<device::SideStream> CudaDevice::side_stream(Priority priority) {
  use();
  return std::make_unique<CudaSideStream>(*this, priority);
}

std::unique_ptr<device::Stopwatch> CudaDevice::stopwatch() {
  return std::make_unique<CudaStopwatch>(*this);
}

}  // namespace trireme::device::cuda
