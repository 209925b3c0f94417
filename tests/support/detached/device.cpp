// SPDX-License-Identifier: Apache-2.0
#include "support/detached/device.hpp"

#include "support/detached/memory.hpp"
#include "support/detached/side_stream.hpp"

#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

namespace trireme::testing {
namespace {

/// Reads the host's clock when the stream comes to a mark.
class DetachedStopwatch final : public device::Stopwatch {
 public:
  explicit DetachedStopwatch(DetachedStream& stream) : stream_(stream) {}
  void start() override {
    stream_.issue([read = reading_] { read->begin = Clock::now(); });
  }
  void stop() override {
    stream_.issue([read = reading_] {
      read->seconds += std::chrono::duration<double>(Clock::now() - read->begin).count();
    });
  }
  double take() override { return std::exchange(reading_->seconds, 0.0); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Reading {
    Clock::time_point begin;
    double seconds = 0;
  };
  DetachedStream& stream_;
  std::shared_ptr<Reading> reading_ = std::make_shared<Reading>();
};

class DetachedGraph final : public device::CapturedGraph {
 public:
  DetachedGraph(DetachedStream& stream, std::vector<DetachedStream::Work> work)
      : stream_(stream), work_(std::move(work)) {}
  void launch() override {
    for (const auto& piece : work_) stream_.issue_until(piece);
  }

 private:
  DetachedStream& stream_;
  std::vector<DetachedStream::Work> work_;
};

void expect_of_host(const void* address, const char* operation) {
  if (detached::owns(address)) {
    throw DetachedFault(std::string(operation) + ": the host's side of a copy lies on the device");
  }
}

/// Of no bytes the addresses may be null, which memcpy forbids.
void copy_bytes(const void* from, void* to, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

device::Arena DetachedDevice::arena(device::Purpose purpose, std::size_t capacity_bytes) {
  expect_no_capture("new memory");
  return detached::take(purpose, capacity_bytes, [stream = stream_] { stream->run_all(); });
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
  expect_no_capture("a copy from the host");
  device::expect_contiguous(to);
  expect_of_host(from, "copy_in");
  const auto reach = detached::behind(to, "copy_in", "to");
  stream_->issue([=] { copy_bytes(from, reach.raw(), reach.byte_count()); });
}

void DetachedDevice::copy_out(const device::Tensor& from, void* to) {
  expect_no_capture("a copy to the host");
  device::expect_contiguous(from);
  expect_of_host(to, "copy_out");
  const auto reach = detached::behind(from, "copy_out", "from");
  stream_->issue([=] { copy_bytes(reach.raw(), to, reach.byte_count()); });
}

void DetachedDevice::copy(const device::Tensor& from, const device::Tensor& to) {
  device::expect_alike(from, to);
  const auto source = detached::behind(from, "copy", "from");
  const auto target = detached::behind(to, "copy", "to");
  stream_->issue([=] { copy_bytes(source.raw(), target.raw(), source.byte_count()); });
}

void DetachedDevice::begin_capture() {
  if (captures_left_-- <= 0) throw device::CaptureRefused("the stand-in of a GPU has had enough");
  stream_->keep();
}

std::unique_ptr<device::CapturedGraph> DetachedDevice::end_capture() {
  return std::make_unique<DetachedGraph>(*stream_, stream_->take_kept());
}

device::Event DetachedDevice::record() {
  expect_no_capture("an event");
  return event_of(*this, stream_);
}

void DetachedDevice::follow(const device::Event& event) {
  expect_no_capture("an event");
  let_follow(*stream_, event);
}

std::unique_ptr<device::SideStream> DetachedDevice::side_stream(device::Priority /*priority*/) {
  return std::make_unique<DetachedSideStream>(*this, order_);
}

std::unique_ptr<device::Stopwatch> DetachedDevice::stopwatch() {
  return std::make_unique<DetachedStopwatch>(*stream_);
}

void DetachedKernels::run(const char* operation, std::span<const device::test::Operand> operands,
                          const Body& body) {
  // Refused when it is issued, as a GPU would refuse it when it runs.
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

void DetachedKernels::start(Sum kind, const char* operation, const device::Tensor& x) {
  device_.expect_no_capture("a sum for the host");
  const auto reach = detached::behind(x, operation, "x");
  auto& answer = answers_.emplace_back(std::nan(""));
  device_.stream().issue([this, kind, reach, &answer] { answer = (inner_.get()->*kind)(reach); });
}

void DetachedKernels::start_sum_of_squares(const device::Tensor& x) {
  start(&device::Kernels::sum_of_squares, "sum_of_squares", x);
}

void DetachedKernels::start_sum(const device::Tensor& x) {
  start(&device::Kernels::sum, "sum", x);
}

std::vector<double> DetachedKernels::finish_sums() {
  if (answers_.empty()) return {};
  device_.synchronize();
  const std::vector<double> answers(answers_.begin(), answers_.end());
  answers_.clear();
  return answers;
}

}  // namespace trireme::testing
