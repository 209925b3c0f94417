// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/cpu_kernels.hpp"

#include "trireme/base/format.hpp"

#include "device/cpu/attention/attention.hpp"
#include "device/cpu/gemm/linear_gemm.hpp"
#include "device/cpu/kernels/activations.hpp"
#include "device/cpu/kernels/arithmetic.hpp"
#include "device/cpu/kernels/cross_entropy.hpp"
#include "device/cpu/kernels/embedding.hpp"
#include "device/cpu/kernels/norm.hpp"
#include "device/cpu/kernels/optimizer.hpp"
#include "device/cpu/kernels/quantise.hpp"
#include "device/cpu/runtime/context.hpp"
#include "device/denormals.hpp"
#include "device/reference/reference.hpp"

namespace trireme::device {
namespace {

class CpuKernels final : public Kernels {
 public:
  explicit CpuKernels(const cpu::Context& context)
      : context_(context),
        gemm_(context.team, cpu::bf16_gemm_of(context.isa), context.tiling),
        attention_(context) {
    flush_denormals();
  }
  const char* name() const override { return "cpu"; }

  void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Tensor& y) override {
    gemm_.linear_forward(x, w, bias, y);
  }
  void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    gemm_.linear_backward_input(dy, w, dx);
  }
  void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw,
                              const Tensor& d_bias) override {
    gemm_.linear_backward_weight(dy, x, dw);
    if (d_bias) cpu::add_column_sums(context_, dy, d_bias);
  }

  void largest_magnitude(const Tensor& x, const Tensor& magnitude) override {
    cpu::largest_magnitude(context_, x, magnitude);
  }
  void quantise(const Tensor& x, const Tensor& magnitude, const Quantised& result) override {
    cpu::quantise(context_, x, magnitude, result);
  }
  void linear_forward_quantised(const Quantised& x, const Quantised& w, const Tensor& bias,
                                const Tensor& y) override {
    gemm_.linear_forward(quantised_.values(context_, x, 0), quantised_.values(context_, w, 1), bias,
                         y);
  }

  void embedding_forward(const Tensor& tokens, const Tensor& table, std::int64_t first_token,
                         const Tensor& out) override {
    cpu::embedding_forward(context_, tokens, table, first_token, out);
  }
  void embedding_backward(const Tensor& tokens, const Tensor& d_out, std::int64_t first_token,
                          const Tensor& d_table) override {
    cpu::embedding_backward(context_, tokens, d_out, first_token, d_table);
  }
  void add_positions(const Tensor& x, const Tensor& table, std::int64_t seq,
                     std::int64_t first_position) override {
    cpu::add_positions(context_, x, table, seq, first_position);
  }
  void add_positions_backward(const Tensor& dx, std::int64_t seq, const Tensor& d_table) override {
    cpu::add_positions_backward(context_, dx, seq, d_table);
  }

  void norm_forward(const NormForward& norm) override { cpu::norm_forward(context_, norm); }
  void norm_backward(const NormBackward& norm) override { cpu::norm_backward(context_, norm); }
  void rotary(const Tensor& x, const Tensor& cos_table, const Tensor& sin_table,
              std::int64_t first_position, bool inverse) override {
    cpu::rotary(context_, x, cos_table, sin_table, first_position, inverse);
  }
  void attention_forward(const Attention& attention) override { attention_.forward(attention); }
  void attention_backward(const AttentionBackward& attention) override {
    attention_.backward(attention);
  }
  void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& y) override {
    cpu::swiglu_forward(context_, gate, up, y);
  }
  void swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up, const Tensor& d_gate,
                       const Tensor& d_up) override {
    cpu::swiglu_backward(context_, dy, gate, up, d_gate, d_up);
  }
  void gelu_forward(const Tensor& x, const Tensor& y) override {
    cpu::gelu_forward(context_, x, y);
  }
  void gelu_backward(const Tensor& dy, const Tensor& x, const Tensor& dx) override {
    cpu::gelu_backward(context_, dy, x, dx);
  }
  void dropout(const Tensor& x, const Dropout& mask, const Tensor& y) override {
    cpu::dropout(context_, x, mask, y);
  }

  void cross_entropy_stats(const Tensor& logits, const Tensor& targets, std::int64_t first_token,
                           const Tensor& stats) override {
    cpu::cross_entropy_stats(context_, logits, targets, first_token, stats);
  }
  // One number a row: nothing to gain over plain loops, here and in sum().
  void cross_entropy_combine(const Tensor& stats, const Tensor& targets, const Tensor& lse,
                             const Tensor& losses) override {
    reference::cross_entropy_combine(stats, targets, lse, losses);
  }
  void cross_entropy_gradient(const Tensor& logits, const Tensor& targets, std::int64_t first_token,
                              const Tensor& lse, float scale) override {
    cpu::cross_entropy_gradient(context_, logits, targets, first_token, lse, scale);
  }

  void fill(const Tensor& x, float value) override { cpu::fill(context_, x, value); }
  void copy(const Tensor& from, const Tensor& to) override { cpu::copy(context_, from, to); }
  void add(const Tensor& x, const Tensor& y, const Tensor& z) override {
    cpu::add(context_, x, y, z);
  }
  void accumulate(const Tensor& x, const Tensor& sum) override {
    cpu::accumulate(context_, x, sum);
  }
  double sum_of_squares(const Tensor& x) override { return cpu::sum_of_squares(context_, x); }
  double sum(const Tensor& x) override { return reference::sum(x); }

  void adamw(const AdamW& rule, const Tensor& gradient, const Tensor& master,
             const Tensor& first_moment, const Tensor& second_moment,
             const Tensor& parameter) override {
    cpu::adamw(context_, rule, {gradient, master, first_moment, second_moment, parameter});
  }
  void sgd(const Sgd& rule, const Tensor& gradient, const Tensor& master, const Tensor& momentum,
           const Tensor& parameter) override {
    cpu::sgd(context_, rule, gradient, master, momentum, parameter);
  }
  void round_stochastically(const Tensor& master, const StochasticRounding& rounding,
                            const Tensor& parameter) override {
    cpu::round_stochastically(context_, master, rounding, parameter);
  }

  void synchronize() override {}

 private:
  cpu::Context context_;
  cpu::LinearGemm gemm_;
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
