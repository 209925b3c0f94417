#include "device/cuda/cuda_device.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace trireme::device::cuda {
namespace {

class Point final : public device::Event::Point {
 public:
  explicit Point(StreamView stream) : event_(Event::make()) { stream.record(event_.view()); }
  bool passed() override { return event_.view().passed(); }
  void wait() override { event_.view().wait(); }

 private:
  Event event_;
};

class CudaSideStream final : public device::SideStream {
 public:
  explicit CudaSideStream(const CudaDevice& device)
      : device_(device), stream_(Stream::make_urgent()) {}
  void* handle() override {
    // Whoever takes it is about to call a library that looks at the thread's card.
    device_.use();
    return stream_.view().raw();
  }
  void follow() override {
    device_.use();
    const auto event = Event::make();
    device_.stream().record(event.view());
    stream_.view().wait_for(event.view());
  }
  device::Event record() override {
    device_.use();
    return device::Event(std::make_unique<Point>(stream_.view()));
  }

 private:
  const CudaDevice& device_;
  Stream stream_;
};

/// From and to host memory of any kind; from memory that is not pinned the runtime copies it first.
void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind direction,
          const CudaDevice& device) {
  if (bytes == 0) return;
  device.use();
  check(cudaMemcpyAsync(to, from, bytes, direction, device.stream().raw()), "cudaMemcpyAsync");
}

Stream stream_on(int card) {
  check(cudaSetDevice(card), "cudaSetDevice");
  return Stream::make();
}

}  // namespace

std::string bus_id_of(int card) {
  std::array<char, 32> text{};
  check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), card),
        "cudaDeviceGetPCIBusId");
  std::string bus_id(text.data());
  std::transform(bus_id.begin(), bus_id.end(), bus_id.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return bus_id;
}

CudaDevice::CudaDevice(int card)
    : card_(card), name_("card " + bus_id_of(card)), stream_(stream_on(card)) {}

void CudaDevice::use() const {
  check(cudaSetDevice(card_), "cudaSetDevice");
}

Arena CudaDevice::arena(Purpose purpose, std::size_t capacity_bytes) {
  use();
  return Arena::cuda(purpose, capacity_bytes);
}

Arena CudaDevice::staging(Purpose purpose, std::size_t capacity_bytes) {
  use();
  return Arena::pinned(purpose, capacity_bytes);
}

void CudaDevice::copy_in(const void* from, const Tensor& to) {
  expect_contiguous(to);
  copy(to.raw(), from, to.byte_count(), cudaMemcpyHostToDevice, *this);
}

void CudaDevice::copy_out(const Tensor& from, void* to) {
  expect_contiguous(from);
  copy(to, from.raw(), from.byte_count(), cudaMemcpyDeviceToHost, *this);
}

device::Event CudaDevice::record() {
  use();
  return device::Event(std::make_unique<Point>(stream()));
}

std::unique_ptr<device::SideStream> CudaDevice::side_stream() {
  use();
  return std::make_unique<CudaSideStream>(*this);
}

std::size_t CudaDevice::taken_bytes() {
  use();
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return total - free;
}

void CudaDevice::synchronize() {
  use();
  stream().synchronize();
}

}  // namespace trireme::device::cuda
