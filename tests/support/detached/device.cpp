#include "support/detached/device.hpp"

#include "support/detached/memory.hpp"
#include "support/detached/side_stream.hpp"

#include <cstring>

namespace trireme::testing {
namespace {

class Point final : public device::Event::Point {
 public:
  explicit Point(DetachedStream& stream) : stream_(stream), place_(stream.issued()) {}
  bool passed() override { return stream_.done() >= place_; }
  void wait() override { stream_.run(place_); }

 private:
  DetachedStream& stream_;
  std::uint64_t place_;
};

void expect_of_host(const void* address, const char* operation) {
  if (detached::owns(address)) {
    throw DetachedFault(std::string(operation) + ": the host's side of a copy lies on the device");
  }
}

}  // namespace

device::Arena DetachedDevice::arena(device::Purpose purpose, std::size_t capacity_bytes) {
  return detached::take(purpose, capacity_bytes, [this] { stream_.run_all(); });
}

device::Arena DetachedDevice::staging(device::Purpose purpose, std::size_t capacity_bytes) {
  auto arena = device::Arena::host(purpose, capacity_bytes);
  const auto bytes = static_cast<std::int64_t>(capacity_bytes / 4);
  const auto all = arena.allocate(device::DType::i32, {bytes});
  std::memset(all.raw(), 0xFF, all.byte_count());
  arena.release(0);
  return arena;
}

void DetachedDevice::copy_in(const void* from, const device::Tensor& to) {
  device::expect_contiguous(to);
  expect_of_host(from, "copy_in");
  const auto reach = detached::behind(to, "copy_in", "to");
  stream_.issue([=] { std::memcpy(reach.raw(), from, reach.byte_count()); });
}

void DetachedDevice::copy_out(const device::Tensor& from, void* to) {
  device::expect_contiguous(from);
  expect_of_host(to, "copy_out");
  const auto reach = detached::behind(from, "copy_out", "from");
  stream_.issue([=] { std::memcpy(to, reach.raw(), reach.byte_count()); });
}

device::Event DetachedDevice::record() {
  return device::Event(std::make_unique<Point>(stream_));
}

std::unique_ptr<device::SideStream> DetachedDevice::side_stream() {
  return std::make_unique<DetachedSideStream>(stream_);
}

void DetachedKernels::run(const char* operation,
                          std::initializer_list<device::test::Operand> operands, const Body& body) {
  // Refused when it is issued, as a card would refuse it when it runs.
  for (const auto& operand : operands) detached::behind(operand.tensor, operation, operand.name);
  device_.stream().issue([this, operation, body] {
    body(*inner_, [operation](const device::Tensor& tensor) {
      return detached::behind(tensor, operation, "operand");
    });
  });
}

double DetachedKernels::sum_of_squares(const device::Tensor& x) {
  device_.synchronize();
  return inner_->sum_of_squares(detached::behind(x, "sum_of_squares", "x"));
}

double DetachedKernels::sum(const device::Tensor& x) {
  device_.synchronize();
  return inner_->sum(detached::behind(x, "sum", "x"));
}

}  // namespace trireme::testing
