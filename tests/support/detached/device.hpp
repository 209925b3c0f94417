#pragma once

#include "trireme/device/device.hpp"
#include "trireme/device/kernels.hpp"

#include "support/detached/stream.hpp"
#include "support/device/operand_kernels.hpp"

#include <memory>
#include <string>
#include <utility>

namespace trireme::testing {

/// Stands in for a card: memory that the host cannot follow, and a stream whose work is done when
/// it must be and not before. Whoever forgets a copy dies of it, whoever forgets a wait computes
/// with NaN or with old numbers.
class DetachedDevice final : public device::Device {
 public:
  explicit DetachedDevice(Haste haste, std::string name = "detached")
      : name_(std::move(name)), stream_(haste) {}

  const char* name() const override { return name_.c_str(); }
  bool is_host() const override { return false; }
  device::Arena arena(device::Purpose purpose, std::size_t capacity_bytes) override;
  device::Arena staging(device::Purpose purpose, std::size_t capacity_bytes) override;
  void copy_in(const void* from, const device::Tensor& to) override;
  void copy_out(const device::Tensor& from, void* to) override;
  device::Event record() override;
  void synchronize() override { stream_.run_all(); }
  std::unique_ptr<device::SideStream> side_stream() override;

  DetachedStream& stream() { return stream_; }

 private:
  std::string name_;
  DetachedStream stream_;
};

/// Kernels of a detached device: those of a host backend on the memory behind it, in the order of
/// its stream.
class DetachedKernels final : public device::test::OperandKernels {
 public:
  explicit DetachedKernels(std::unique_ptr<device::Kernels> inner, Haste haste = {})
      : inner_(std::move(inner)), device_(haste) {}

  const char* name() const override { return inner_->name(); }
  device::Device& device() override { return device_; }
  DetachedStream& stream() { return device_.stream(); }
  double sum_of_squares(const device::Tensor& x) override;
  double sum(const device::Tensor& x) override;
  void synchronize() override { device_.synchronize(); }

 private:
  void run(const char* operation, std::initializer_list<device::test::Operand> operands,
           const Body& body) override;

  std::unique_ptr<device::Kernels> inner_;
  DetachedDevice device_;
};

}  // namespace trireme::testing
