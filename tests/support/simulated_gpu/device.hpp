// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/device.hpp"
#include "trireme/device/kernels.hpp"

#include "support/device/flights.hpp"
#include "support/device/operand_kernels.hpp"
#include "support/simulated_gpu/streams.hpp"

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// The simulated GPU as a device::Device, for tests of whoever computes on one, without CUDA.
namespace trireme::testing {

using simulated_gpu::Haste;

/// Use of memory that a GPU would not allow; the text names operation and memory.
class DeviceFault : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Memory of simulated devices. `before_free` is called before it goes.
device::Arena arena_on_device(device::Purpose purpose, std::size_t capacity_bytes,
                              std::function<void()> before_free = {});
/// The same tensor where work of the device reaches it; an empty one stays empty. Throws
/// DeviceFault when it is the host's own, or leaves its arena.
device::Tensor reached(const device::Tensor& tensor, const char* operation, const char* operand);
bool lies_on_device(const void* address);

/// Stands in for a GPU: memory that the host cannot follow, and a stream whose work is done when
/// it must be and not before. Whoever forgets a copy dies of it, whoever forgets a wait computes
/// with NaN or with old numbers.
class SimulatedDevice final : public device::Device, public WatchesFlights {
 public:
  using Work = std::function<void()>;

  explicit SimulatedDevice(Haste haste, std::string name = "simulated GPU");

  const char* name() const override { return name_.c_str(); }
  bool is_host() const override { return false; }
  device::Arena arena(device::Purpose purpose, std::size_t capacity_bytes) override;
  device::Arena staging(device::Purpose purpose, std::size_t capacity_bytes) override;
  void copy_in(const void* from, const device::Tensor& to) override;
  void copy_out(const device::Tensor& from, void* to) override;
  void copy(const device::Tensor& from, const device::Tensor& to) override;
  device::Event record() override;
  void follow(const device::Event& event) override;
  /// Its handle is the simulated_gpu::Stream, for libraries that stand in for a GPU's. Work there
  /// may take its time; it moves on when somebody looks at an event that it leads to.
  std::unique_ptr<device::SideStream> side_stream(device::Priority priority) override;
  std::unique_ptr<device::Stopwatch> stopwatch() override;
  bool can_capture() const override { return true; }
  bool capturing() const override { return captured_.has_value(); }
  /// Throws CaptureRefused from the given beginning on, which counts from 0.
  void refuse_captures_from(int beginning) { captures_left_ = beginning; }
  void begin_capture() override;
  std::unique_ptr<device::CapturedGraph> end_capture() override;
  void abandon_capture() override { captured_.reset(); }
  Flights& flights() override { return flights_; }

  /// Work of its own stream, or of what is captured.
  void issue(Work work);

 private:
  std::string name_;
  std::shared_ptr<simulated_gpu::Scheduler> scheduler_;
  std::shared_ptr<simulated_gpu::Stream> stream_;
  std::optional<std::vector<Work>> captured_;
  Flights flights_;
  int captures_left_ = std::numeric_limits<int>::max();
};

/// Kernels of a simulated device: those of a host backend on the memory behind it, in the order of
/// its stream.
class SimulatedKernels final : public device::test::OperandKernels {
 public:
  explicit SimulatedKernels(std::unique_ptr<device::Kernels> inner, Haste haste = {})
      : inner_(std::move(inner)), device_(haste) {}

  const char* name() const override { return inner_->name(); }
  SimulatedDevice& device() override { return device_; }
  double sum_of_squares(const device::Tensor& x) override;
  double sum(const device::Tensor& x) override;
  void start_sum_of_squares(const device::Tensor& x) override;
  void start_sum(const device::Tensor& x) override;
  std::vector<double> finish_sums() override;
  void synchronize() override { device_.synchronize(); }

 private:
  void run(const char* operation, std::span<const device::test::Operand> operands,
           const Body& body) override;

  using Sum = double (device::Kernels::*)(const device::Tensor&);
  std::shared_ptr<const double> start(Sum kind, const char* operation, const device::Tensor& x);

  std::unique_ptr<device::Kernels> inner_;
  SimulatedDevice device_;
  /// Answers of sums that were started.
  std::vector<std::shared_ptr<const double>> answers_;
};

}  // namespace trireme::testing
