// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include "device/cuda/kernels/operations.hpp"

namespace trireme::device::cuda {

/// Kernels whose operations run by own code on a launcher `L`: on a GPU's, or on the executor of
/// the tests. Products are left to a library.
template <typename L>
class OwnKernels : public Kernels {
 public:
  void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Tensor& y) override {
    const bool alike = bias && bias.dtype() == y.dtype();
    if (alike && multiply_forward_and_bias(x, w, bias, y)) return;
    multiply_forward(x, w, y);
    if (bias) cuda::add_bias(start(), bias, y);
  }
  void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw,
                              const Tensor& d_bias) override {
    if (d_bias && multiply_backward_weight_and_bias(dy, x, dw, d_bias)) return;
    multiply_backward_weight(dy, x, dw);
    if (d_bias) cuda::add_column_sums(start(), dy, d_bias);
  }

  void largest_magnitude(const Tensor& x, const Tensor& magnitude) override {
    cuda::largest_magnitude(start(), x, magnitude);
  }
  void quantise(const Tensor& x, const Tensor& magnitude, const Quantised& result) override {
    cuda::quantise(start(), x, magnitude, result);
  }

  void embedding_forward(const Tensor& tokens, const Tensor& table, std::int64_t first_token,
                         const Tensor& out) override {
    cuda::embedding_forward(start(), tokens, table, first_token, out);
  }
  void embedding_backward(const Tensor& tokens, const Tensor& d_out, std::int64_t first_token,
                          const Tensor& d_table) override {
    cuda::embedding_backward(start(), tokens, d_out, first_token, d_table);
  }
  void add_positions(const Tensor& x, const Tensor& table, std::int64_t seq,
                     std::int64_t first_position) override {
    cuda::add_positions(start(), x, table, seq, first_position);
  }
  void add_positions_backward(const Tensor& dx, std::int64_t seq, const Tensor& d_table) override {
    cuda::add_positions_backward(start(), dx, seq, d_table);
  }

  void norm_forward(const NormForward& norm) override { cuda::norm_forward(start(), norm); }
  void norm_backward(const NormBackward& norm) override { cuda::norm_backward(start(), norm); }
  void rotary(const Tensor& x, const Tensor& cos_table, const Tensor& sin_table,
              std::int64_t first_position, bool inverse) override {
    cuda::rotary(start(), x, {cos_table, sin_table, first_position, inverse});
  }
  void attention_forward(const Attention& attention) override {
    cuda::attention_forward(start(), attention);
  }
  void attention_backward(const AttentionBackward& attention) override {
    cuda::attention_backward(start(), attention);
  }
  void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& y) override {
    cuda::swiglu_forward(start(), gate, up, y);
  }
  void swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up, const Tensor& d_gate,
                       const Tensor& d_up) override {
    cuda::swiglu_backward(start(), dy, gate, up, d_gate, d_up);
  }
  void gelu_forward(const Tensor& x, const Tensor& y) override {
    cuda::gelu_forward(start(), x, y);
  }
  void gelu_backward(const Tensor& dy, const Tensor& x, const Tensor& dx) override {
    cuda::gelu_backward(start(), dy, x, dx);
  }
  void dropout(const Tensor& x, const Dropout& mask, const Tensor& y) override {
    cuda::dropout(start(), x, mask, y);
  }

  void cross_entropy_stats(const Tensor& logits, const Tensor& targets, std::int64_t first_token,
                           const Tensor& stats) override {
    cuda::cross_entropy_stats(start(), logits, targets, first_token, stats);
  }
  void cross_entropy_gradient(const Tensor& logits, const Tensor& targets, std::int64_t first_token,
                              const Tensor& lse, float scale) override {
    cuda::cross_entropy_gradient(start(), logits, targets, first_token, lse, scale);
  }
  void cross_entropy_combine(const Tensor& stats, const Tensor& targets, const Tensor& lse,
                             const Tensor& losses) override {
    cuda::cross_entropy_combine(start(), stats, targets, lse, losses);
  }

  void fill(const Tensor& x, float value) override { cuda::fill(start(), x, value); }
  void copy(const Tensor& from, const Tensor& to) override { cuda::copy(start(), from, to); }
  void add(const Tensor& x, const Tensor& y, const Tensor& z) override {
    cuda::add(start(), x, y, z);
  }
  void accumulate(const Tensor& x, const Tensor& sum) override {
    cuda::accumulate(start(), x, sum);
  }
  double sum_of_squares(const Tensor& x) override { return cuda::sum_of_squares(start(), x); }
  double sum(const Tensor& x) override { return cuda::sum(start(), x); }

  void adamw(const AdamW& rule, const Tensor& gradient, const Tensor& master,
             const Tensor& first_moment, const Tensor& second_moment,
             const Tensor& parameter) override {
    cuda::adamw(start(), rule, {gradient, master, first_moment, second_moment, parameter});
  }
  void sgd(const Sgd& rule, const Tensor& gradient, const Tensor& master, const Tensor& momentum,
           const Tensor& parameter) override {
    cuda::sgd(start(), rule, {gradient, master, momentum, {}, parameter});
  }
  void round_stochastically(const Tensor& master, const StochasticRounding& rounding,
                            const Tensor& parameter) override {
    cuda::round_stochastically(start(), master, rounding, parameter);
  }

 private:
  /// Begins an operation.
  virtual L& start() = 0;
  /// linear_forward without a bias.
  virtual void multiply_forward(const Tensor& x, const Tensor& w, const Tensor& y) = 0;
  /// With a bias of y's type; or false and nothing.
  virtual bool multiply_forward_and_bias(const Tensor& x, const Tensor& w, const Tensor& bias,
                                         const Tensor& y) = 0;
  /// linear_backward_weight without a bias.
  virtual void multiply_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) = 0;
  /// Both in one, or false and nothing.
  virtual bool multiply_backward_weight_and_bias(const Tensor& /*dy*/, const Tensor& /*x*/,
                                                 const Tensor& /*dw*/, const Tensor& /*d_bias*/) {
    return false;
  }
};

}  // namespace trireme::device::cuda
