#include "trireme/base/format.hpp"
#include "trireme/device/kernels.hpp"

#include "device/cuda/blas.hpp"
#include "device/cuda/launcher.hpp"
#include "device/cuda/operations.hpp"
#include "device/cuda/products.hpp"
#include "device/cuda/stream.hpp"

namespace trireme::device {
namespace {

class CudaKernels final : public Kernels {
 public:
  CudaKernels(int card, const cuda::Blas& blas)
      : card_(card),
        stream_(cuda::Stream::make()),
        launcher_(stream_.view()),
        products_(blas, stream_.view()) {}
  const char* name() const override { return "cuda"; }

  void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Tensor& y) override {
    auto& launcher = start();
    const bool fused = !bias || bias.dtype() == y.dtype();
    products_.forward(x, w, fused ? bias : Tensor(), y);
    if (!fused) cuda::add_bias(launcher, bias, y);
  }
  void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx,
                             bool accumulate) override {
    start();
    products_.backward_input(dy, w, dx, accumulate);
  }
  void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw,
                              const Tensor& d_bias) override {
    auto& launcher = start();
    products_.backward_weight(dy, x, dw);
    if (d_bias) cuda::add_column_sums(launcher, dy, d_bias);
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
  void scale(const Tensor& x, float factor) override { cuda::scale(start(), x, factor); }
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

  void synchronize() override { stream_.view().synchronize(); }

 private:
  /// Begins an operation: on this card, whatever the calling thread used before.
  cuda::Launcher& start() {
    cuda::check(cudaSetDevice(card_), "cudaSetDevice");
    launcher_.reset();
    return launcher_;
  }

  int card_;
  cuda::Stream stream_;
  cuda::Launcher launcher_;
  cuda::Products products_;
};

base::Failure no_card(const std::string& reason) {
  return {base::ExitCode::topology,
          base::format("numerics.backend = cuda finds no card ({}); run on a node with an NVIDIA "
                       "GPU and its driver, or use cpu",
                       reason)};
}

}  // namespace

base::Result<std::unique_ptr<Kernels>> make_cuda_kernels(int card) {
  int count = 0;
  if (const auto code = cudaGetDeviceCount(&count); code != cudaSuccess) {
    return no_card(cuda::failure_text("cudaGetDeviceCount", code));
  }
  if (card < 0 || card >= count) {
    return no_card(base::format("number {} is asked for and there are {}", card, count));
  }
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, card), "cudaGetDeviceProperties");
  if (properties.major < 8) {
    return no_card(
        base::format("card {}, {}, has compute capability {}.{}, and 8.0 is the oldest "
                     "that can multiply bf16",
                     card, properties.name, properties.major, properties.minor));
  }
  const auto blas = cuda::load_blas();
  if (!blas.ok()) return blas.failure();
  cuda::check(cudaSetDevice(card), "cudaSetDevice");
  return std::unique_ptr<Kernels>(std::make_unique<CudaKernels>(card, **blas));
}

}  // namespace trireme::device
