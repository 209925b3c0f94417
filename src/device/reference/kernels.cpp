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

  void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Tensor& y) override {
    reference::linear_forward(x, w, bias, y);
  }
  void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    reference::linear_backward_input(dy, w, dx);
  }
  void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw,
                              const Tensor& d_bias) override {
    reference::linear_backward_weight(dy, x, dw, d_bias);
  }

  void largest_magnitude(const Tensor& x, const Tensor& magnitude) override {
    reference::largest_magnitude(x, magnitude);
  }
  void quantise(const Tensor& x, const Tensor& magnitude, const Quantised& result) override {
    reference::quantise(x, magnitude, result);
  }
  void linear_forward_quantised(const Quantised& x, const Quantised& w, const Tensor& bias,
                                const Tensor& y) override {
    reference::linear_forward_quantised(x, w, bias, y);
  }

  void embedding_forward(const Tensor& tokens, const Tensor& table, std::int64_t first_token,
                         const Tensor& out) override {
    reference::embedding_forward(tokens, table, first_token, out);
  }
  void embedding_backward(const Tensor& tokens, const Tensor& d_out, std::int64_t first_token,
                          const Tensor& d_table) override {
    reference::embedding_backward(tokens, d_out, first_token, d_table);
  }
  void add_positions(const Tensor& x, const Tensor& table, std::int64_t seq,
                     std::int64_t first_position) override {
    reference::add_positions(x, table, seq, first_position);
  }
  void add_positions_backward(const Tensor& dx, std::int64_t seq, const Tensor& d_table) override {
    reference::add_positions_backward(dx, seq, d_table);
  }

  void norm_forward(const NormForward& norm) override { reference::norm_forward(norm); }
  void norm_backward(const NormBackward& norm) override { reference::norm_backward(norm); }
  void rotary(const Tensor& x, const Tensor& cos_table, const Tensor& sin_table,
              std::int64_t first_position, bool inverse) override {
    reference::rotary(x, cos_table, sin_table, first_position, inverse);
  }
  void attention_forward(const Attention& attention) override {
    reference::attention_forward(attention);
  }
  void attention_backward(const AttentionBackward& attention) override {
    reference::attention_backward(attention);
  }
  void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& y) override {
    reference::swiglu_forward(gate, up, y);
  }
  void swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up, const Tensor& d_gate,
                       const Tensor& d_up) override {
    reference::swiglu_backward(dy, gate, up, d_gate, d_up);
  }
  void gelu_forward(const Tensor& x, const Tensor& y) override { reference::gelu_forward(x, y); }
  void gelu_backward(const Tensor& dy, const Tensor& x, const Tensor& dx) override {
    reference::gelu_backward(dy, x, dx);
  }
  void dropout(const Tensor& x, const Dropout& mask, const Tensor& y) override {
    reference::dropout(x, mask, y);
  }

  void cross_entropy_stats(const Tensor& logits, const Tensor& targets, std::int64_t first_token,
                           const Tensor& stats) override {
    reference::cross_entropy_stats(logits, targets, first_token, stats);
  }
  void cross_entropy_gradient(const Tensor& logits, const Tensor& targets, std::int64_t first_token,
                              const Tensor& lse, float scale) override {
    reference::cross_entropy_gradient(logits, targets, first_token, lse, scale);
  }

  void cross_entropy_combine(const Tensor& stats, const Tensor& targets, const Tensor& lse,
                             const Tensor& losses) override {
    reference::cross_entropy_combine(stats, targets, lse, losses);
  }

  void fill(const Tensor& x, float value) override { reference::fill(x, value); }
  void copy(const Tensor& from, const Tensor& to) override { reference::copy(from, to); }
  void add(const Tensor& x, const Tensor& y, const Tensor& z) override { reference::add(x, y, z); }
  void accumulate(const Tensor& x, const Tensor& sum) override { reference::accumulate(x, sum); }
  double sum_of_squares(const Tensor& x) override { return reference::sum_of_squares(x); }
  double sum(const Tensor& x) override { return reference::sum(x); }

  void adamw(const AdamW& rule, const Tensor& gradient, const Tensor& master,
             const Tensor& first_moment, const Tensor& second_moment,
             const Tensor& parameter) override {
    reference::adamw(rule, gradient, master, first_moment, second_moment, parameter);
  }
  void sgd(const Sgd& rule, const Tensor& gradient, const Tensor& master, const Tensor& momentum,
           const Tensor& parameter) override {
    reference::sgd(rule, gradient, master, momentum, parameter);
  }
  void round_stochastically(const Tensor& master, const StochasticRounding& rounding,
                            const Tensor& parameter) override {
    reference::round_stochastically(master, rounding, parameter);
  }

  void synchronize() override {}
};

}  // namespace

std::unique_ptr<Kernels> make_reference_kernels() {
  return std::make_unique<ReferenceKernels>();
}

}  // namespace trireme::device
