// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/cpu_kernels.hpp"

#include "trireme/base/format.hpp"

#include "device/cpu/attention/attention.hpp"
#include "device/cpu/gemm/linear_gemm.hpp"
#include "device/cpu/gemm/matrix_gemm.hpp"
#include "device/cpu/gemm/wide_gemm.hpp"
#include "device/cpu/kernels/arithmetic.hpp"
#include "device/cpu/kernels/quantise.hpp"
#include "device/cpu/kernels/run.hpp"
#include "device/cpu/runtime/context.hpp"
#include "device/denormals.hpp"
#include "device/fused_operations.hpp"
#include "device/reference/reference.hpp"

namespace trireme::device {
namespace {

class CpuKernels final : public Kernels {
 public:
  explicit CpuKernels(const cpu::Context& context)
      : context_(context),
        gemm_(context.team, cpu::bf16_gemm_of(context.isa), context.tiling),
        matrices_(context.team, context.isa),
        wide_(context.team, context.isa),
        attention_(context) {
    flush_denormals();
  }
  const char* name() const override { return "cpu"; }
  double sum_of_squares(const Tensor& x) override { return cpu::sum_of_squares(context_, x); }
  // One number a row: nothing to gain over plain loops.
  double sum(const Tensor& x) override { return reference::sum(x); }
  void synchronize() override {}

 private:
  void compute(const Operation& operation) override {
    operation.visit([this](const auto& one) { run(one); });
  }
  template <typename One>
  void run(const One& operation) {
    cpu::run(context_, operation);
  }
  void run(const LinearForward& linear) {
    gemm_.linear_forward(linear.x, linear.w, linear.bias, linear.y);
  }
  void run(const LinearBackwardInput& linear) {
    gemm_.linear_backward_input(linear.dy, linear.w, linear.dx);
  }
  void run(const LinearBackwardWeight& linear) {
    gemm_.linear_backward_weight(linear.dy, linear.x, linear.dw);
    if (linear.d_bias) cpu::add_column_sums(context_, linear.dy, linear.d_bias);
  }
  void run(const LinearForwardQuantised& linear) {
    gemm_.linear_forward(quantised_.values(context_, linear.x, 0),
                         quantised_.values(context_, linear.w, 1), linear.bias, linear.y);
  }
  void run(const LinearGeluForward& fused) {
    run_parts(fused, [this](const auto& part) { run(part); });
  }
  void run(const LinearBackwardGelu& fused) {
    run_parts(fused, [this](const auto& part) { run(part); });
  }
  void run(const SymmetricProduct& product) { matrices_.run(product); }
  void run(const AddProduct& product) { matrices_.run(product); }
  void run(const SymmetricRankUpdate& update) { wide_.run(update); }
  void run(const WideProduct& product) { wide_.run(product); }
  void run(const Attention& attention) { attention_.forward(attention); }
  void run(const AttentionBackward& attention) { attention_.backward(attention); }

  cpu::Context context_;
  cpu::LinearGemm gemm_;
  cpu::MatrixGemm matrices_;
  cpu::WideGemm wide_;
  cpu::FlashAttention attention_;
  cpu::QuantisedValues quantised_;
};

}  // namespace

std::unique_ptr<Kernels> cpu::make_kernels(int threads, Isa isa, Tiling tiling, ThreadWait wait) {
  TRIREME_EXPECT(threads >= 1, base::format("{} threads of kernels", threads));
  TRIREME_EXPECT(runs(isa), base::format("this CPU does not run {}", cpu::name(isa)));
  return std::make_unique<CpuKernels>(Context{std::make_shared<Team>(threads, wait), isa, tiling});
}

std::unique_ptr<Kernels> make_cpu_kernels(int threads, Tiling tiling) {
  return make_cpu_kernels(threads, tiling, {});
}

std::unique_ptr<Kernels> make_cpu_kernels(int threads, Tiling tiling, ThreadWait wait) {
  return cpu::make_kernels(threads, cpu::best_isa(), tiling, wait);
}

}  // namespace trireme::device
