// SPDX-License-Identifier: Apache-2.0
#include "step_work.hpp"

#include "trireme/base/philox.hpp"

#include <cmath>
#include <initializer_list>

namespace trireme::bench {
namespace {

using device::DType;
using device::Kernels;
using device::NormKind;
using device::Tensor;

constexpr std::int64_t hidden = 768;
constexpr std::int64_t layers = 12;
constexpr std::int64_t heads = 12;
constexpr std::int64_t head_dim = hidden / heads;
constexpr std::int64_t vocabulary = 50257;
constexpr std::int64_t parameter_count = 124'439'808;

class StepCalls {
 public:
  StepCalls(Kernels& kernels, device::Arena& arena, DType dtype, std::int64_t batch,
            std::int64_t seq)
      : kernels_(kernels),
        arena_(arena),
        dtype_(dtype),
        batch_(batch),
        seq_(seq),
        rows_(batch * seq) {}

  std::vector<Call> all() {
    add_layer_gemms();
    add_attention();
    add_norms();
    add_activations();
    add_head();
    add_optimizer();
    return std::move(calls_);
  }

 private:
  Tensor take(DType dtype, std::initializer_list<std::int64_t> shape) {
    auto tensor = arena_.allocate(dtype, shape);
    if (dtype != DType::i32)
      kernels_.issue(device::Fill{tensor, 0.01F * static_cast<float>(++taken_)});
    return tensor;
  }

  void add(const char* phase, std::string name, int times, double operations,
           std::function<void()> run) {
    calls_.push_back({phase, std::move(name), times, operations, std::move(run)});
  }

  /// GEMMs of a linear layer: forward, backward by input, backward by weight.
  void add_linear(const std::string& name, int times, const Tensor& x, const Tensor& w,
                  const Tensor& y) {
    const auto bias = take(dtype_, {w.dim(0)});
    const auto dw = take(DType::f32, {w.dim(0), w.dim(1)});
    const auto operations = 2.0 * static_cast<double>(rows_) * static_cast<double>(w.dim(0)) *
                            static_cast<double>(w.dim(1));
    auto& kernels = kernels_;
    add("products", name + " forward", times, operations, [=, &kernels] {
      kernels.issue(device::LinearForward{x, w, bias, y});
    });
    add("products", name + " backward input", times, operations, [=, &kernels] {
      kernels.issue(device::LinearBackwardInput{y, w, x});
    });
    add("products", name + " backward weight", times, operations, [=, &kernels] {
      kernels.issue(device::LinearBackwardWeight{y, x, dw, {}});
    });
  }

  void add_layer_gemms() {
    const auto x = take(dtype_, {rows_, hidden});
    const auto y = take(dtype_, {rows_, hidden});
    const auto qkv = take(dtype_, {rows_, 3 * hidden});
    const auto wide = take(dtype_, {rows_, 4 * hidden});
    add_linear("qkv", layers, x, take(dtype_, {3 * hidden, hidden}), qkv);
    add_linear("projection", layers, x, take(dtype_, {hidden, hidden}), y);
    add_linear("up", layers, x, take(dtype_, {4 * hidden, hidden}), wide);
    add_linear("down", layers, wide, take(dtype_, {hidden, 4 * hidden}), x);
  }

  void add_attention() {
    const auto qkv = take(dtype_, {batch_, seq_, 3 * hidden});
    const auto d_qkv = take(dtype_, {batch_, seq_, 3 * hidden});
    const auto part = [&](const Tensor& fused, std::int64_t index) {
      return fused.slice(2, index * hidden, hidden).split(2, head_dim);
    };
    device::Attention forward;
    forward.q = part(qkv, 0);
    forward.k = part(qkv, 1);
    forward.v = part(qkv, 2);
    forward.out = take(dtype_, {batch_, seq_, heads, head_dim});
    forward.lse = take(DType::f32, {batch_, heads, seq_});
    forward.scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
    const device::AttentionBackward backward{forward, take(dtype_, {batch_, seq_, heads, head_dim}),
                                             part(d_qkv, 0), part(d_qkv, 1), part(d_qkv, 2)};
    // Half of the scores are masked: two GEMMs forward, five backward.
    const double gemm = static_cast<double>(batch_ * seq_ * seq_ * hidden);
    auto& kernels = kernels_;
    add("attention", "forward", layers, 2 * gemm, [=, &kernels] { kernels.issue(forward); });
    add("attention", "backward", layers, 5 * gemm, [=, &kernels] { kernels.issue(backward); });
  }

  void add_norms() {
    const auto like = [&] { return take(dtype_, {rows_, hidden}); };
    const auto weight = take(dtype_, {hidden});
    const device::NormForward forward{NormKind::layer,
                                      like(),
                                      like(),
                                      like(),
                                      weight,
                                      take(dtype_, {hidden}),
                                      like(),
                                      take(DType::f32, {rows_}),
                                      take(DType::f32, {rows_}),
                                      1e-5F};
    const device::NormBackward backward{NormKind::layer,
                                        forward.y,
                                        forward.sum,
                                        weight,
                                        forward.mean,
                                        forward.rstd,
                                        forward.x,
                                        like(),
                                        take(DType::f32, {hidden}),
                                        take(DType::f32, {hidden})};
    auto& kernels = kernels_;
    add("norms", "forward", 2 * layers + 1, 0, [=, &kernels] { kernels.issue(forward); });
    add("norms", "backward", 2 * layers + 1, 0, [=, &kernels] { kernels.issue(backward); });
  }

  void add_activations() {
    const auto x = take(dtype_, {rows_, 4 * hidden});
    const auto y = take(dtype_, {rows_, 4 * hidden});
    auto& kernels = kernels_;
    add("activations", "gelu forward", layers, 0, [=, &kernels] {
      kernels.issue(device::GeluForward{x, y});
    });
    add("activations", "gelu backward", layers, 0, [=, &kernels] {
      kernels.issue(device::GeluBackward{y, x, y});
    });
  }

  void add_head() {
    const auto x = take(dtype_, {rows_, hidden});
    const auto table = take(dtype_, {vocabulary, hidden});
    const auto logits = take(dtype_, {rows_, vocabulary});
    const auto tokens = take(DType::i32, {rows_});
    for (std::int64_t row = 0; row < rows_; ++row) {
      const auto bits = base::philox(1, 2, static_cast<std::uint64_t>(row))[0];
      tokens.i32()[row] = static_cast<std::int32_t>(bits % static_cast<std::uint32_t>(vocabulary));
    }
    const auto stats = take(DType::f32, {3, rows_});
    const auto lse = take(DType::f32, {rows_});
    const auto d_table = take(DType::f32, {vocabulary, hidden});
    add_linear("head", 1, x, table, logits);
    auto& kernels = kernels_;
    add("cross-entropy", "statistics", 1, 0, [=, &kernels] {
      kernels.issue(device::CrossEntropyStats{logits, tokens, 0, stats});
    });
    add("cross-entropy", "gradient", 1, 0, [=, &kernels] {
      kernels.issue(device::CrossEntropyGradient{logits, tokens, 0, lse, 1e-3F});
    });
    add("embedding", "forward and backward", 1, 0, [=, &kernels] {
      kernels.issue(device::EmbeddingForward{tokens, table, 0, x});
      kernels.issue(device::EmbeddingBackward{tokens, x, 0, d_table});
    });
  }

  void add_optimizer() {
    const auto gradient = take(DType::f32, {parameter_count});
    const auto master = take(DType::f32, {parameter_count});
    const auto first = take(DType::f32, {parameter_count});
    const auto second = take(DType::f32, {parameter_count});
    const auto parameter = dtype_ == DType::bf16 ? take(dtype_, {parameter_count}) : master;
    auto& kernels = kernels_;
    add("optimizer", "zero gradients", 1, 0, [=, &kernels] {
      kernels.issue(device::Fill{gradient, 0.0F});
    });
    add("optimizer", "gradient norm", 1, 0, [=, &kernels] { kernels.sum_of_squares(gradient); });
    add("optimizer", "adamw", 1, 0, [=, &kernels] {
      kernels.issue(device::AdamWUpdate{
          {1e-4F, 0.9F, 0.95F, 1e-8F, 0.1F, 1.0F, 1}, gradient, master, first, second, parameter});
    });
  }

  Kernels& kernels_;
  device::Arena& arena_;
  DType dtype_;
  std::int64_t batch_;
  std::int64_t seq_;
  std::int64_t rows_;
  int taken_ = 0;
  std::vector<Call> calls_;
};

}  // namespace

std::vector<Call> step_calls(Kernels& kernels, device::Arena& arena, DType dtype,
                             std::int64_t batch, std::int64_t seq) {
  return StepCalls(kernels, arena, dtype, batch, seq).all();
}

}  // namespace trireme::bench
