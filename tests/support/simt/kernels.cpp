// SPDX-License-Identifier: Apache-2.0
#include "support/simt/kernels.hpp"

#include "device/cuda/kernels/arithmetic.cuh"
#include "device/cuda/kernels/attention_backward.cuh"
#include "device/cuda/kernels/attention_forward.cuh"
#include "device/cuda/kernels/cross_entropy.cuh"
#include "device/cuda/kernels/embedding.cuh"
#include "device/cuda/kernels/norm.cuh"
#include "device/cuda/kernels/optimizer.cuh"
#include "device/cuda/kernels/own_kernels.hpp"
#include "device/cuda/kernels/quantise.cuh"
#include "support/simt/launcher.hpp"

#include <string_view>

namespace trireme::device::simt {
namespace {

/// Product and bias as the cuda backend divides them between library and own kernels.
class HostKernels final : public cuda::OwnKernels<HostLauncher> {
 public:
  explicit HostKernels(HostLauncher& launcher)
      : launcher_(launcher), products_(make_reference_kernels()) {}
  const char* name() const override { return "simt"; }

  void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    products_->linear_backward_input(dy, w, dx);
  }
  void linear_forward_quantised(const Quantised& x, const Quantised& w, const Tensor& bias,
                                const Tensor& y) override {
    products_->linear_forward_quantised(x, w, bias, y);
  }
  void synchronize() override {}

 private:
  HostLauncher& start() override { return launcher_; }
  void multiply_forward(const Tensor& x, const Tensor& w, const Tensor& y) override {
    products_->linear_forward(x, w, {}, y);
  }
  bool multiply_forward_and_bias(const Tensor& /*x*/, const Tensor& /*w*/, const Tensor& /*bias*/,
                                 const Tensor& /*y*/) override {
    // As a library that adds none: own kernels do.
    return false;
  }
  void multiply_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) override {
    products_->linear_backward_weight(dy, x, dw, {});
  }

  HostLauncher& launcher_;
  std::unique_ptr<Kernels> products_;
};

}  // namespace

void ExecutedKernels::run(const char* operation, std::initializer_list<test::Operand> operands,
                          const Body& body) {
  // What the library writes, the executor does not see: to own kernels it is written already.
  const bool by_library = std::string_view(operation).starts_with("linear");
  Memory memory;
  for (const auto& operand : operands) {
    const auto role = by_library && operand.role == Role::output ? Role::in_out : operand.role;
    memory.declare(operand.name, operand.tensor, role);
  }
  HostLauncher launcher(executor_, memory);
  HostKernels kernels(launcher);
  body(kernels, [](const Tensor& tensor) { return tensor; });
  memory.expect_written(operation);
  traffic_ = memory.traffic();
}

}  // namespace trireme::device::simt
