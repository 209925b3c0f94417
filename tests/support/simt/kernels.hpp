#pragma once

#include "trireme/device/kernels.hpp"

#include "support/simt/executor.hpp"
#include "support/simt/launcher.hpp"

#include <functional>
#include <string>
#include <vector>

namespace trireme::device::simt {

/// The own kernels of the cuda backend on the executor: device::Kernels whose every access to
/// memory is checked, and whose every output must be written. Products, which a library computes on
/// a card, are those of the reference.
class ExecutedKernels final : public Kernels {
 public:
  explicit ExecutedKernels(std::uint64_t seed)
      : executor_(seed), products_(make_reference_kernels()) {}

  const char* name() const override { return "simt"; }

  void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Tensor& y) override;
  void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx,
                             bool accumulate) override;
  void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw,
                              const Tensor& d_bias) override;
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
  void scale(const Tensor& x, float factor) override;
  double sum_of_squares(const Tensor& x) override;
  double sum(const Tensor& x) override;
  void adamw(const AdamW& rule, const Tensor& gradient, const Tensor& master,
             const Tensor& first_moment, const Tensor& second_moment,
             const Tensor& parameter) override;
  void sgd(const Sgd& rule, const Tensor& gradient, const Tensor& master, const Tensor& momentum,
           const Tensor& parameter) override;
  void synchronize() override {}

 private:
  struct Operand {
    const char* name;
    const Tensor& tensor;
    Role role;
  };
  /// Runs an operation that may touch these tensors alone.
  void run(const char* operation, std::initializer_list<Operand> operands,
           const std::function<void(HostLauncher&)>& body);

  Executor executor_;
  std::unique_ptr<Kernels> products_;
};

}  // namespace trireme::device::simt
