// SPDX-License-Identifier: Apache-2.0
#include "support/simt/kernels.hpp"

#include "device/cuda/kernels/arithmetic.cuh"
#include "device/cuda/kernels/attention_backward.cuh"
#include "device/cuda/kernels/attention_forward.cuh"
#include "device/cuda/kernels/cross_entropy.cuh"
#include "device/cuda/kernels/embedding.cuh"
#include "device/cuda/kernels/matrices.cuh"
#include "device/cuda/kernels/norm.cuh"
#include "device/cuda/kernels/optimizer.cuh"
#include "device/cuda/kernels/own_kernels.hpp"
#include "device/cuda/kernels/own_operations.cuh"
#include "device/cuda/kernels/quantise.cuh"
#include "device/cuda/kernels/wide_products.cuh"
#include "support/simt/launcher.hpp"

#include <limits>
#include <string_view>

namespace trireme::device::simt {
namespace {

/// GEMMs of the reference, as a library without epilogues: own kernels do the rest.
class ReferenceGemm {
 public:
  void forward(const Tensor& x, const Tensor& w, const Tensor& y) {
    kernels_->issue(LinearForward{x, w, {}, y});
  }
  void forward_quantised(const Quantised& x, const Quantised& w, const Tensor& y) {
    kernels_->issue(LinearForwardQuantised{x, w, {}, y});
  }
  void backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx) {
    kernels_->issue(LinearBackwardInput{dy, w, dx});
  }
  void backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) {
    kernels_->issue(LinearBackwardWeight{dy, x, dw, {}});
  }
  static bool forward_and_bias(const Tensor&, const Tensor&, const Tensor&, const Tensor&) {
    return false;
  }
  static bool forward_quantised_and_bias(const Quantised&, const Quantised&, const Tensor&,
                                         const Tensor&) {
    return false;
  }
  Triangles symmetric_product(const GemmCall& call) {
    kernels_->issue(SymmetricProduct{call.x, call.added, call.result, call.factors.product,
                                     call.factors.added, call.triangles, call.w});
    if (call.triangles == Triangles::lower) spoil_upper_triangle(call.result);
    return call.triangles;
  }
  void add_product(const GemmCall& call) {
    kernels_->issue(AddProduct{call.x, call.w, call.result, call.factors.added});
  }
  static bool gelu_forward(const GemmCall&) { return false; }
  static bool backward_gelu(const GemmCall&) { return false; }

 private:
  /// The triangle that no product has computed.
  static void spoil_upper_triangle(const Tensor& matrices) {
    const auto n = matrices.dim(2);
    with_type(matrices.dtype(), [&](auto element) {
      auto* const values = data_of<decltype(element)>(matrices);
      for (std::int64_t at = 0; at < matrices.element_count(); ++at) {
        if (at % n > at / n % n) assign(values[at], std::numeric_limits<float>::quiet_NaN());
      }
    });
  }

  std::unique_ptr<Kernels> kernels_ = make_reference_kernels();
};

/// GEMM and bias as the cuda backend divides them between library and own kernels.
class HostKernels final : public cuda::OwnKernels<HostLauncher, ReferenceGemm> {
 public:
  explicit HostKernels(HostLauncher& launcher) : launcher_(launcher) {}
  const char* name() const override { return "simt"; }
  void synchronize() override {}

 private:
  HostLauncher& start() override { return launcher_; }
  ReferenceGemm& gemm() override { return gemm_; }
  void decompose(const SymmetricEigenvectors& operation) override { reference_->issue(operation); }
  void decompose(const OrthonormaliseRows& operation) override { reference_->issue(operation); }

  HostLauncher& launcher_;
  ReferenceGemm gemm_;
  std::unique_ptr<Kernels> reference_ = make_reference_kernels();
};

}  // namespace

void ExecutedKernels::run(const char* operation, std::span<const test::Operand> operands,
                          const Body& body) {
  // Writes of the library are not seen by the executor: to own kernels it is written already.
  const std::string_view name(operation);
  const bool by_library = name.starts_with("linear") || name == SymmetricProduct::name ||
                          name == AddProduct::name || name == SymmetricEigenvectors::name ||
                          name == OrthonormaliseRows::name;
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
