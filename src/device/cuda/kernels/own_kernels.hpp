// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include "device/cuda/kernels/own_operations.hpp"
#include "device/fused_operations.hpp"

namespace trireme::device::cuda {

/// Kernels whose operations run by own code on a launcher `L`: on a GPU's, or on the executor of
/// the tests. GEMMs are a library's: `Gemm` has the functions of `LinearGemm`.
template <typename L, typename Gemm>
class OwnKernels : public Kernels {
 public:
  double sum_of_squares(const Tensor& x) override { return cuda::sum_of_squares(start(), x); }
  double sum(const Tensor& x) override { return cuda::sum(start(), x); }

 private:
  /// Begins an operation of own kernels.
  virtual L& start() = 0;
  /// Begins an operation of the library's.
  virtual Gemm& gemm() = 0;
  /// Computes gradients of weight and bias in one, or returns false and does nothing.
  virtual bool multiply_and_add_bias_gradient(const LinearBackwardWeight&) { return false; }
  /// Computes a decomposition by a library.
  virtual void decompose(const SymmetricEigenvectors& operation) = 0;
  virtual void decompose(const OrthonormaliseRows& operation) = 0;
  /// Computes attention by a library, or returns false and does nothing.
  virtual bool run_fused(const Attention&) { return false; }
  virtual bool run_fused(const AttentionBackward&) { return false; }

  void compute(const Operation& operation) override {
    operation.visit([this](const auto& one) { this->run(one); });
  }
  template <typename One>
  void run(const One& operation) {
    issue_own(start(), operation);
  }
  void run(const LinearForward& linear) {
    const auto& [x, w, bias, y] = linear;
    const bool alike = bias && bias.dtype() == y.dtype();
    if (alike && gemm().forward_and_bias(x, w, bias, y)) return;
    gemm().forward(x, w, y);
    if (bias) run(AddBias{bias, y});
  }
  void run(const LinearBackwardInput& linear) {
    gemm().backward_input(linear.dy, linear.w, linear.dx);
  }
  void run(const LinearBackwardWeight& linear) {
    if (linear.d_bias && multiply_and_add_bias_gradient(linear)) return;
    gemm().backward_weight(linear.dy, linear.x, linear.dw);
    if (linear.d_bias) run(AddColumnSums{linear.dy, linear.d_bias});
  }
  void run(const LinearForwardQuantised& linear) {
    const auto& [x, w, bias, y] = linear;
    if (bias && gemm().forward_quantised_and_bias(x, w, bias, y)) return;
    gemm().forward_quantised(x, w, y);
    if (bias) run(AddBias{bias, y});
  }
  void run(const LinearGeluForward& fused) {
    if (gemm().gelu_forward(gemm_call(fused))) return;
    run_parts(fused, [this](const auto& part) { this->run(part); });
  }
  void run(const LinearBackwardGelu& fused) {
    if (gemm().backward_gelu(gemm_call(fused))) return;
    run_parts(fused, [this](const auto& part) { this->run(part); });
  }
  void run(const SymmetricProduct& product) {
    if (gemm().symmetric_product(gemm_call(product)) == Triangles::both) return;
    run(MirrorTriangle{product.y});
  }
  void run(const AddProduct& product) { gemm().add_product(gemm_call(product)); }
  void run(const SymmetricEigenvectors& operation) { decompose(operation); }
  void run(const OrthonormaliseRows& operation) { decompose(operation); }
  void run(const Attention& attention) {
    if (!run_fused(attention)) issue_own(start(), attention);
  }
  void run(const AttentionBackward& backward) {
    if (!run_fused(backward)) issue_own(start(), backward);
  }
};

}  // namespace trireme::device::cuda
