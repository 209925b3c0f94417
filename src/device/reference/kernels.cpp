// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/kernels.hpp"

#include "device/denormals.hpp"
#include "device/reference/reference.hpp"

namespace trireme::device {
namespace {

class ReferenceKernels final : public Kernels {
 public:
  ReferenceKernels() { flush_denormals(); }
  const char* name() const override { return "reference"; }
  double sum_of_squares(const Tensor& x) override { return reference::sum_of_squares(x); }
  double sum(const Tensor& x) override { return reference::sum(x); }
  void synchronize() override {}

 private:
  void compute(const Operation& operation) override {
    operation.visit([](const auto& one) { reference::run(one); });
  }
};

}  // namespace

std::unique_ptr<Kernels> make_reference_kernels() {
  return std::make_unique<ReferenceKernels>();
}

}  // namespace trireme::device
