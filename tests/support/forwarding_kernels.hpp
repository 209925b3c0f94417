// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace trireme::testing {

/// Kernels that others compute; what derives from them sees what is issued.
class ForwardingKernels : public device::Kernels {
 public:
  explicit ForwardingKernels(std::unique_ptr<device::Kernels> inner) : inner_(std::move(inner)) {}

  const char* name() const override { return inner_->name(); }
  device::Device& device() override { return inner_->device(); }
  void compute(const device::Operation& operation) override { inner_->issue(operation); }
  double sum_of_squares(const device::Tensor& x) override { return inner_->sum_of_squares(x); }
  double sum(const device::Tensor& x) override { return inner_->sum(x); }
  void start_sum_of_squares(const device::Tensor& x) override { inner_->start_sum_of_squares(x); }
  void start_sum(const device::Tensor& x) override { inner_->start_sum(x); }
  std::vector<double> finish_sums() override { return inner_->finish_sums(); }
  void synchronize() override { inner_->synchronize(); }

 private:
  std::unique_ptr<device::Kernels> inner_;
};

}  // namespace trireme::testing
