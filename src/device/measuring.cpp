// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/kernels.hpp"

namespace trireme::device {
namespace {

class MeasuringKernels : public Kernels {
 public:
  const char* name() const override { return "measuring"; }
  void linear_forward(const Tensor&, const Tensor&, const Tensor&, const Tensor&) override {}
  void linear_backward_input(const Tensor&, const Tensor&, const Tensor&) override {}
  void linear_backward_weight(const Tensor&, const Tensor&, const Tensor&, const Tensor&) override {
  }
  void largest_magnitude(const Tensor&, const Tensor&) override {}
  void quantise(const Tensor&, const Tensor&, const Quantised&) override {}
  void linear_forward_quantised(const Quantised&, const Quantised&, const Tensor&,
                                const Tensor&) override {}
  void embedding_forward(const Tensor&, const Tensor&, std::int64_t, const Tensor&) override {}
  void embedding_backward(const Tensor&, const Tensor&, std::int64_t, const Tensor&) override {}
  void add_positions(const Tensor&, const Tensor&, std::int64_t, std::int64_t) override {}
  void add_positions_backward(const Tensor&, std::int64_t, const Tensor&) override {}
  void norm_forward(const NormForward&) override {}
  void norm_backward(const NormBackward&) override {}
  void rotary(const Tensor&, const Tensor&, const Tensor&, std::int64_t, bool) override {}
  void attention_forward(const Attention&) override {}
  void attention_backward(const AttentionBackward&) override {}
  void swiglu_forward(const Tensor&, const Tensor&, const Tensor&) override {}
  void swiglu_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                       const Tensor&) override {}
  void gelu_forward(const Tensor&, const Tensor&) override {}
  void gelu_backward(const Tensor&, const Tensor&, const Tensor&) override {}
  void dropout(const Tensor&, const Dropout&, const Tensor&) override {}
  void cross_entropy_stats(const Tensor&, const Tensor&, std::int64_t, const Tensor&) override {}
  void cross_entropy_gradient(const Tensor&, const Tensor&, std::int64_t, const Tensor&,
                              float) override {}
  void cross_entropy_combine(const Tensor&, const Tensor&, const Tensor&, const Tensor&) override {}
  void fill(const Tensor&, float) override {}
  void copy(const Tensor&, const Tensor&) override {}
  void add(const Tensor&, const Tensor&, const Tensor&) override {}
  void accumulate(const Tensor&, const Tensor&) override {}
  double sum_of_squares(const Tensor&) override { return 0.0; }
  double sum(const Tensor&) override { return 0.0; }
  void adamw(const AdamW&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
             const Tensor&) override {}
  void sgd(const Sgd&, const Tensor&, const Tensor&, const Tensor&, const Tensor&) override {}
  void round_stochastically(const Tensor&, const StochasticRounding&, const Tensor&) override {}
  void synchronize() override {}
};

/// Operands of its GEMMs lie in measuring arenas, as aligned as in real ones.
class RecordingKernels final : public MeasuringKernels {
 public:
  explicit RecordingKernels(std::vector<GemmCall>& calls) : calls_(calls) {}
  void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Tensor& y) override {
    calls_.push_back({Kind::forward, x, w, bias, {}, y});
  }
  void linear_forward_quantised(const Quantised& x, const Quantised& w, const Tensor& bias,
                                const Tensor& y) override {
    calls_.push_back(
        {Kind::quantised_forward, x.codes, w.codes, bias, {}, y, x.unscale, w.unscale});
  }
  void linear_gelu_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& wide,
                           const Tensor& y) override {
    calls_.push_back({Kind::gelu_forward, x, w, bias, wide, y});
  }
  void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    calls_.push_back({Kind::backward_input, dy, w, {}, {}, dx});
  }
  void linear_backward_gelu(const Tensor& dy, const Tensor& w, const Tensor& wide,
                            const Tensor& d_wide) override {
    calls_.push_back({Kind::backward_gelu, dy, w, {}, wide, d_wide});
  }
  void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw,
                              const Tensor& d_bias) override {
    calls_.push_back({Kind::backward_weight, dy, x, d_bias, {}, dw});
  }

 private:
  using Kind = GemmCall::Kind;
  std::vector<GemmCall>& calls_;
};

}  // namespace

std::unique_ptr<Kernels> make_recording_kernels(std::vector<GemmCall>& calls) {
  return std::make_unique<RecordingKernels>(calls);
}

std::unique_ptr<Kernels> make_measuring_kernels() {
  return std::make_unique<MeasuringKernels>();
}

}  // namespace trireme::device
