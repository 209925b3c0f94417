// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include <functional>
#include <initializer_list>

namespace trireme::device::test {

/// What an operation may do with a tensor. An output must be written everywhere and may be read
/// only where it has been written.
enum class Role { input, output, in_out };

struct Operand {
  const char* name;
  const Tensor& tensor;
  Role role;
};

/// Kernels that pass every operation on to others, with a list of its operands and their roles: a
/// place to check what is touched, or to move tensors to where the others can reach them.
class OperandKernels : public Kernels {
 public:
  /// Where the inner kernels find a tensor; an empty tensor stays empty.
  using Placement = std::function<Tensor(const Tensor&)>;
  /// Of all but sums it may be kept and called later: it holds what it needs.
  using Body = std::function<void(Kernels& inner, const Placement& at)>;

  void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Tensor& y) override;
  void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx) override;
  void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw,
                              const Tensor& d_bias) override;
  void largest_magnitude(const Tensor& x, const Tensor& magnitude) override;
  void quantise(const Tensor& x, const Tensor& magnitude, const Quantised& result) override;
  void linear_forward_quantised(const Quantised& x, const Quantised& w, const Tensor& bias,
                                const Tensor& y) override;
  void linear_gelu_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& wide,
                           const Tensor& y) override;
  void linear_backward_gelu(const Tensor& dy, const Tensor& w, const Tensor& wide,
                            const Tensor& d_wide) override;
  void embedding_forward(const Tensor& tokens, const Tensor& table, std::int64_t first_token,
                         const Tensor& out) override;
  void embedding_backward(const Tensor& tokens, const Tensor& d_out, std::int64_t first_token,
                          const Tensor& d_table) override;
  void add_positions(const Tensor& x, const Tensor& table, std::int64_t seq,
                     std::int64_t first_position) override;
  void add_positions_backward(const Tensor& dx, std::int64_t seq, const Tensor& d_table) override;
  void norm_forward(const NormForward& norm) override;
  void norm_backward(const NormBackward& norm) override;
  void rotary(const Tensor& x, const Tensor& cos_table, const Tensor& sin_table,
              std::int64_t first_position, bool inverse) override;
  void attention_forward(const Attention& attention) override;
  void attention_backward(const AttentionBackward& attention) override;
  void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& y) override;
  void swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up, const Tensor& d_gate,
                       const Tensor& d_up) override;
  void gelu_forward(const Tensor& x, const Tensor& y) override;
  void gelu_backward(const Tensor& dy, const Tensor& x, const Tensor& dx) override;
  void dropout(const Tensor& x, const Dropout& mask, const Tensor& y) override;
  void cross_entropy_stats(const Tensor& logits, const Tensor& targets, std::int64_t first_token,
                           const Tensor& stats) override;
  void cross_entropy_gradient(const Tensor& logits, const Tensor& targets, std::int64_t first_token,
                              const Tensor& lse, float scale) override;
  void cross_entropy_combine(const Tensor& stats, const Tensor& targets, const Tensor& lse,
                             const Tensor& losses) override;
  void fill(const Tensor& x, float value) override;
  void copy(const Tensor& from, const Tensor& to) override;
  void add(const Tensor& x, const Tensor& y, const Tensor& z) override;
  void accumulate(const Tensor& x, const Tensor& sum) override;
  double sum_of_squares(const Tensor& x) override;
  double sum(const Tensor& x) override;
  void adamw(const AdamW& rule, const Tensor& gradient, const Tensor& master,
             const Tensor& first_moment, const Tensor& second_moment,
             const Tensor& parameter) override;
  void sgd(const Sgd& rule, const Tensor& gradient, const Tensor& master, const Tensor& momentum,
           const Tensor& parameter) override;
  void round_stochastically(const Tensor& master, const StochasticRounding& rounding,
                            const Tensor& parameter) override;

 private:
  virtual void run(const char* operation, std::initializer_list<Operand> operands,
                   const Body& body) = 0;
};

}  // namespace trireme::device::test
