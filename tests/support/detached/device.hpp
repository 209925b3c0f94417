// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/device.hpp"
#include "trireme/device/kernels.hpp"

#include "support/detached/stream.hpp"
#include "support/device/operand_kernels.hpp"

#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace trireme::testing {

/// Stands in for a GPU: memory that the host cannot follow, and a stream whose work is done when
/// it must be and not before. Whoever forgets a copy dies of it, whoever forgets a wait computes
/// with NaN or with old numbers.
class DetachedDevice final : public device::Device {
 public:
  explicit DetachedDevice(Haste haste, std::string name = "detached")
      : name_(std::move(name)),
        order_(std::make_shared<DetachedOrder>(haste)),
        stream_(std::make_shared<DetachedStream>(order_)) {}

  const char* name() const override { return name_.c_str(); }
  bool is_host() const override { return false; }
  device::Arena arena(device::Purpose purpose, std::size_t capacity_bytes) override;
  device::Arena staging(device::Purpose purpose, std::size_t capacity_bytes) override;
  void copy_in(const void* from, const device::Tensor& to) override;
  void copy_out(const device::Tensor& from, void* to) override;
  void copy(const device::Tensor& from, const device::Tensor& to) override;
  device::Event record() override;
  void follow(const device::Event& event) override;
  std::unique_ptr<device::SideStream> side_stream(device::Priority priority) override;
  std::unique_ptr<device::Stopwatch> stopwatch() override;
  bool can_capture() const override { return true; }
  bool capturing() const override { return stream_->keeps(); }
  /// Throws CaptureRefused from the given beginning on, which counts from 0.
  void refuse_captures_from(int beginning) { captures_left_ = beginning; }
  void begin_capture() override;
  std::unique_ptr<device::CapturedGraph> end_capture() override;
  void abandon_capture() override { stream_->take_kept(); }

  DetachedStream& stream() { return *stream_; }

 private:
  std::string name_;
  std::shared_ptr<DetachedOrder> order_;
  std::shared_ptr<DetachedStream> stream_;
  int captures_left_ = std::numeric_limits<int>::max();
};

/// Kernels of a detached device: those of a host backend on the memory behind it, in the order of
/// its stream.
class DetachedKernels final : public device::test::OperandKernels {
 public:
  explicit DetachedKernels(std::unique_ptr<device::Kernels> inner, Haste haste = {})
      : inner_(std::move(inner)), device_(haste) {}

  const char* name() const override { return inner_->name(); }
  DetachedDevice& device() override { return device_; }
  DetachedStream& stream() { return device_.stream(); }
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
  void start(Sum kind, const char* operation, const device::Tensor& x);

  std::unique_ptr<device::Kernels> inner_;
  DetachedDevice device_;
  /// Of sums that were started; pointers to them stay valid.
  std::deque<double> answers_;
};

}  // namespace trireme::testing
