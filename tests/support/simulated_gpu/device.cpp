// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_gpu/device.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

namespace trireme::testing {
namespace {

using device::Tensor;
using simulated_gpu::Marker;
using simulated_gpu::Stream;

/// Memory of all simulated devices; never destroyed, because arenas may be.
simulated_gpu::Memory& memory() {
  static auto* const all = new simulated_gpu::Memory;
  return *all;
}

void release(std::byte* begin, std::size_t /*bytes*/) {
  memory().free(*memory().block_of(begin));
}

/// Bytes from the first element to the end of the last.
std::size_t extent(const Tensor& tensor) {
  if (tensor.element_count() == 0) return 0;
  std::int64_t last = 0;
  for (int index = 0; index < tensor.rank(); ++index) {
    last += (tensor.dim(index) - 1) * tensor.stride(index);
  }
  return static_cast<std::size_t>(last + 1) * device::size_of(tensor.dtype());
}

void expect_of_host(const void* address, const char* operation) {
  if (lies_on_device(address)) {
    throw DeviceFault(std::string(operation) + ": the host's side of a copy lies on the device");
  }
}

/// Addresses of no bytes may be null, which memcpy forbids.
void copy_bytes(const void* from, void* to, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

/// The copies' work, on whichever stream.
SimulatedDevice::Work copying_in(const void* from, const Tensor& to) {
  device::expect_contiguous(to);
  expect_of_host(from, "copy_in");
  const auto reach = reached(to, "copy_in", "to");
  return [=] { copy_bytes(from, reach.raw(), reach.byte_count()); };
}

SimulatedDevice::Work copying_out(const Tensor& from, void* to) {
  device::expect_contiguous(from);
  expect_of_host(to, "copy_out");
  const auto reach = reached(from, "copy_out", "from");
  return [=] { copy_bytes(reach.raw(), to, reach.byte_count()); };
}

/// Looking at it makes the stream move on, from the second look on: whoever looks once and takes
/// the answer for a wait is deceived.
class Point final : public device::Event::Point {
 public:
  Point(device::Device& device, Marker marker) : device_(device), marker_(std::move(marker)) {}
  bool passed() override {
    if (looked_) marker_.run();
    looked_ = true;
    return marker_.passed();
  }
  void block() override {
    // Work that takes its time may need this very thread to go on.
    if (!marker_.run()) throw std::logic_error("the host blocks on work that nobody drives");
  }
  void* handle() override { return &marker_; }
  device::Device& device() override { return device_; }

 private:
  device::Device& device_;
  Marker marker_;
  bool looked_ = false;
};

void let_follow(Stream& stream, const device::Event& event) {
  auto* const point = event.point();
  if (point != nullptr) stream.follow(*static_cast<const Marker*>(point->handle()));
}

class SimulatedSideStream final : public device::SideStream {
 public:
  SimulatedSideStream(device::Device& device, std::shared_ptr<simulated_gpu::Scheduler> scheduler)
      : device_(device), stream_(std::make_shared<Stream>(std::move(scheduler))) {}
  void* handle() override { return stream_.get(); }
  void copy_in(const void* from, const Tensor& to) override {
    stream_->issue(copying_in(from, to));
  }
  void copy_out(const Tensor& from, void* to) override { stream_->issue(copying_out(from, to)); }
  void follow(const device::Event& event) override { let_follow(*stream_, event); }
  device::Event record() override {
    return device::Event(std::make_unique<Point>(device_, stream_->mark()));
  }

 private:
  device::Device& device_;
  /// Lives on while something waits for its work.
  std::shared_ptr<Stream> stream_;
};

/// Reads the host's clock when the stream comes to a mark.
class SimulatedStopwatch final : public device::Stopwatch {
 public:
  explicit SimulatedStopwatch(SimulatedDevice& device) : device_(device) {}
  void start() override {
    device_.issue([read = reading_] { read->begin = Clock::now(); });
  }
  void stop() override {
    device_.issue([read = reading_] {
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
  SimulatedDevice& device_;
  std::shared_ptr<Reading> reading_ = std::make_shared<Reading>();
};

class SimulatedGraph final : public device::CapturedGraph {
 public:
  SimulatedGraph(SimulatedDevice& device, std::vector<SimulatedDevice::Work> work)
      : device_(device), work_(std::move(work)) {}
  bool is_empty() const override { return work_.empty(); }
  void launch() override {
    for (const auto& piece : work_) device_.issue(piece);
  }

 private:
  SimulatedDevice& device_;
  std::vector<SimulatedDevice::Work> work_;
};

}  // namespace

device::Arena arena_on_device(device::Purpose purpose, std::size_t capacity_bytes,
                              std::function<void()> before_free) {
  const auto* const block = memory().allocate({.bytes = capacity_bytes,
                                               .kind = simulated_gpu::Block::Kind::translated,
                                               .label = device::name(purpose),
                                               .before_free = std::move(before_free)});
  if (block == nullptr) {
    base::throw_errno(base::ExitCode::internal, "cannot map memory of a simulated GPU", errno);
  }
  return device::Arena::adopt(purpose, block->begin, capacity_bytes, &release);
}

Tensor reached(const Tensor& tensor, const char* operation, const char* operand) {
  if (!tensor) return tensor;
  const auto* const block = memory().block_of(tensor.raw());
  if (block == nullptr) {
    throw DeviceFault(
        base::format("{}: {} ({}) lies in host memory, which a GPU's kernels do not reach",
                     operation, operand, tensor.text()));
  }
  if (!block->holds(tensor.raw(), extent(tensor))) {
    throw DeviceFault(base::format("{}: {} ({}) leaves its memory at {}", operation, operand,
                                   tensor.text(), block->describe(tensor.raw())));
  }
  return tensor.moved_to(block->reach + (static_cast<std::byte*>(tensor.raw()) - block->begin));
}

bool lies_on_device(const void* address) {
  return memory().block_of(address) != nullptr;
}

SimulatedDevice::SimulatedDevice(Haste haste, std::string name)
    : name_(std::move(name)),
      scheduler_(std::make_shared<simulated_gpu::Scheduler>(haste, memory())),
      stream_(std::make_shared<Stream>(scheduler_)) {}

device::Arena SimulatedDevice::arena(device::Purpose purpose, std::size_t capacity_bytes) {
  expect_no_capture("new memory");
  return arena_on_device(purpose, capacity_bytes, [stream = stream_] { stream->run_all(); });
}

device::Arena SimulatedDevice::staging(device::Purpose purpose, std::size_t capacity_bytes) {
  auto arena = device::Arena::host(purpose, capacity_bytes);
  const auto bytes = static_cast<std::int64_t>(capacity_bytes / 4);
  const auto all = arena.allocate(device::DType::i32, {bytes});
  std::memset(all.raw(), 0xFF, all.byte_count());
  arena.release(0);
  return arena;
}

void SimulatedDevice::issue(Work work) {
  if (captured_) {
    captured_->push_back(std::move(work));
  } else {
    stream_->issue(std::move(work));
  }
}

void SimulatedDevice::copy_in(const void* from, const Tensor& to) {
  expect_no_capture("a copy from the host");
  issue(copying_in(from, to));
}

void SimulatedDevice::copy_out(const Tensor& from, void* to) {
  expect_no_capture("a copy to the host");
  issue(copying_out(from, to));
}

void SimulatedDevice::copy(const Tensor& from, const Tensor& to) {
  device::expect_alike(from, to);
  const auto source = reached(from, "copy", "from");
  const auto target = reached(to, "copy", "to");
  issue([=] { copy_bytes(source.raw(), target.raw(), source.byte_count()); });
}

void SimulatedDevice::begin_capture() {
  if (captures_left_-- <= 0) throw device::CaptureRefused("the stand-in of a GPU has had enough");
  captured_.emplace();
}

std::unique_ptr<device::CapturedGraph> SimulatedDevice::end_capture() {
  auto work = std::exchange(captured_, std::nullopt).value_or(std::vector<Work>{});
  return std::make_unique<SimulatedGraph>(*this, std::move(work));
}

device::Event SimulatedDevice::record() {
  expect_no_capture("an event");
  return device::Event(std::make_unique<Point>(*this, stream_->mark()));
}

void SimulatedDevice::follow(const device::Event& event) {
  expect_no_capture("an event");
  let_follow(*stream_, event);
}

std::unique_ptr<device::SideStream> SimulatedDevice::side_stream(device::Priority /*priority*/) {
  return std::make_unique<SimulatedSideStream>(*this, scheduler_);
}

std::unique_ptr<device::Stopwatch> SimulatedDevice::stopwatch() {
  return std::make_unique<SimulatedStopwatch>(*this);
}

void SimulatedKernels::run(const char* operation, std::span<const device::test::Operand> operands,
                           const Body& body) {
  // Refused when it is issued, as a GPU would refuse it when it runs.
  for (const auto& operand : operands) {
    reached(operand.tensor, operation, operand.name);
    if (operand.tensor && !device_.capturing()) {
      device_.flights().check(operation, operand.name, {operand.tensor, operand.role});
    }
  }
  device_.issue([this, operation, body] {
    body(*inner_,
         [operation](const Tensor& tensor) { return reached(tensor, operation, "operand"); });
  });
}

std::shared_ptr<const double> SimulatedKernels::start(Sum kind, const char* operation,
                                                      const Tensor& x) {
  device_.expect_no_capture("a sum for the host");
  const auto reach = reached(x, operation, "x");
  auto answer = std::make_shared<double>(std::nan(""));
  device_.issue([this, kind, reach, answer] { *answer = (inner_.get()->*kind)(reach); });
  return answer;
}

double SimulatedKernels::sum_of_squares(const Tensor& x) {
  const auto answer = start(&device::Kernels::sum_of_squares, "sum_of_squares", x);
  device_.synchronize();
  return *answer;
}

double SimulatedKernels::sum(const Tensor& x) {
  const auto answer = start(&device::Kernels::sum, "sum", x);
  device_.synchronize();
  return *answer;
}

void SimulatedKernels::start_sum_of_squares(const Tensor& x) {
  answers_.push_back(start(&device::Kernels::sum_of_squares, "sum_of_squares", x));
}

void SimulatedKernels::start_sum(const Tensor& x) {
  answers_.push_back(start(&device::Kernels::sum, "sum", x));
}

std::vector<double> SimulatedKernels::finish_sums() {
  if (answers_.empty()) return {};
  device_.synchronize();
  std::vector<double> answers;
  for (const auto& answer : answers_) answers.push_back(*answer);
  answers_.clear();
  return answers;
}

}  // namespace trireme::testing
