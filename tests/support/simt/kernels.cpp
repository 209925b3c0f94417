#include "support/simt/kernels.hpp"

#include "device/cuda/kernels/arithmetic.cuh"
#include "device/cuda/kernels/attention_backward.cuh"
#include "device/cuda/kernels/attention_forward.cuh"
#include "device/cuda/kernels/cross_entropy.cuh"
#include "device/cuda/kernels/embedding.cuh"
#include "device/cuda/kernels/norm.cuh"
#include "device/cuda/kernels/optimizer.cuh"

namespace trireme::device::simt {

constexpr auto input = Role::input;
constexpr auto output = Role::output;
constexpr auto in_out = Role::in_out;

void ExecutedKernels::run(const char* operation, std::initializer_list<Operand> operands,
                          const std::function<void(HostLauncher&)>& body) {
  Memory memory;
  for (const auto& operand : operands) memory.declare(operand.name, operand.tensor, operand.role);
  HostLauncher launcher(executor_, memory);
  body(launcher);
  memory.expect_written(operation);
}

void ExecutedKernels::linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                                     const Tensor& y) {
  if (!bias || bias.dtype() == y.dtype()) {
    products_->linear_forward(x, w, bias, y);
    return;
  }
  products_->linear_forward(x, w, {}, y);
  run("add_bias", {{"bias", bias, input}, {"y", y, in_out}},
      [&](HostLauncher& launcher) { cuda::add_bias(launcher, bias, y); });
}

void ExecutedKernels::linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx,
                                            bool accumulate) {
  products_->linear_backward_input(dy, w, dx, accumulate);
}

void ExecutedKernels::linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw,
                                             const Tensor& d_bias) {
  products_->linear_backward_weight(dy, x, dw, {});
  if (!d_bias) return;
  run("column_sums", {{"dy", dy, input}, {"d_bias", d_bias, in_out}},
      [&](HostLauncher& launcher) { cuda::add_column_sums(launcher, dy, d_bias); });
}

void ExecutedKernels::embedding_forward(const Tensor& tokens, const Tensor& table,
                                        std::int64_t first_token, const Tensor& out) {
  run("embedding_forward",
      {{"tokens", tokens, input}, {"table", table, input}, {"out", out, output}},
      [&](HostLauncher& l) { cuda::embedding_forward(l, tokens, table, first_token, out); });
}

void ExecutedKernels::embedding_backward(const Tensor& tokens, const Tensor& d_out,
                                         std::int64_t first_token, const Tensor& d_table) {
  run("embedding_backward",
      {{"tokens", tokens, input}, {"d_out", d_out, input}, {"d_table", d_table, in_out}},
      [&](HostLauncher& l) { cuda::embedding_backward(l, tokens, d_out, first_token, d_table); });
}

void ExecutedKernels::add_positions(const Tensor& x, const Tensor& table, std::int64_t seq,
                                    std::int64_t first_position) {
  run("add_positions", {{"x", x, in_out}, {"table", table, input}},
      [&](HostLauncher& l) { cuda::add_positions(l, x, table, seq, first_position); });
}

void ExecutedKernels::add_positions_backward(const Tensor& dx, std::int64_t seq,
                                             const Tensor& d_table) {
  run("add_positions_backward", {{"dx", dx, input}, {"d_table", d_table, in_out}},
      [&](HostLauncher& l) { cuda::add_positions_backward(l, dx, seq, d_table); });
}

void ExecutedKernels::norm_forward(const NormForward& norm) {
  const Tensor none;
  run("norm_forward",
      {{"x", norm.x, input},
       {"residual", norm.residual, input},
       {"sum", norm.residual ? norm.sum : none, output},
       {"weight", norm.weight, input},
       {"bias", norm.bias, input},
       {"y", norm.y, output},
       {"mean", norm.mean, output},
       {"rstd", norm.rstd, output}},
      [&](HostLauncher& l) { cuda::norm_forward(l, norm); });
}

void ExecutedKernels::norm_backward(const NormBackward& norm) {
  const Tensor none;
  run("norm_backward",
      {{"dy", norm.dy, input},
       {"x", norm.x, input},
       {"weight", norm.weight, input},
       {"mean", norm.kind == NormKind::layer ? norm.mean : none, input},
       {"rstd", norm.rstd, input},
       {"d_residual", norm.d_residual, input},
       {"dx", norm.dx, output},
       {"d_weight", norm.d_weight, in_out},
       {"d_bias", norm.d_bias, in_out}},
      [&](HostLauncher& l) { cuda::norm_backward(l, norm); });
}

void ExecutedKernels::rotary(const Tensor& x, const Tensor& cos_table, const Tensor& sin_table,
                             std::int64_t first_position, bool inverse) {
  run("rotary",
      {{"x", x, in_out}, {"cos_table", cos_table, input}, {"sin_table", sin_table, input}},
      [&](HostLauncher& l) {
        cuda::rotary(l, x, {cos_table, sin_table, first_position, inverse});
      });
}

void ExecutedKernels::attention_forward(const Attention& attention) {
  run("attention_forward",
      {{"q", attention.q, input},
       {"k", attention.k, input},
       {"v", attention.v, input},
       {"out", attention.out, output},
       {"lse", attention.lse, output}},
      [&](HostLauncher& l) { cuda::attention_forward(l, attention); });
}

void ExecutedKernels::attention_backward(const AttentionBackward& backward) {
  const auto& forward = backward.forward;
  run("attention_backward",
      {{"q", forward.q, input},
       {"k", forward.k, input},
       {"v", forward.v, input},
       {"out", forward.out, input},
       {"lse", forward.lse, input},
       {"d_out", backward.d_out, input},
       {"dq", backward.dq, output},
       {"dk", backward.dk, output},
       {"dv", backward.dv, output}},
      [&](HostLauncher& l) { cuda::attention_backward(l, backward); });
}

void ExecutedKernels::swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& y) {
  run("swiglu_forward", {{"gate", gate, input}, {"up", up, input}, {"y", y, output}},
      [&](HostLauncher& l) { cuda::swiglu_forward(l, gate, up, y); });
}

void ExecutedKernels::swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up,
                                      const Tensor& d_gate, const Tensor& d_up) {
  run("swiglu_backward",
      {{"dy", dy, input},
       {"gate", gate, input},
       {"up", up, input},
       {"d_gate", d_gate, output},
       {"d_up", d_up, output}},
      [&](HostLauncher& l) { cuda::swiglu_backward(l, dy, gate, up, d_gate, d_up); });
}

void ExecutedKernels::gelu_forward(const Tensor& x, const Tensor& y) {
  run("gelu_forward", {{"x", x, input}, {"y", y, output}},
      [&](HostLauncher& l) { cuda::gelu_forward(l, x, y); });
}

void ExecutedKernels::gelu_backward(const Tensor& dy, const Tensor& x, const Tensor& dx) {
  run("gelu_backward", {{"dy", dy, input}, {"x", x, input}, {"dx", dx, output}},
      [&](HostLauncher& l) { cuda::gelu_backward(l, dy, x, dx); });
}

void ExecutedKernels::dropout(const Tensor& x, const Dropout& mask, const Tensor& y) {
  run("dropout", {{"x", x, input}, {"y", y, output}},
      [&](HostLauncher& l) { cuda::dropout(l, x, mask, y); });
}

void ExecutedKernels::cross_entropy_stats(const Tensor& logits, const Tensor& targets,
                                          std::int64_t first_token, const Tensor& stats) {
  run("cross_entropy_stats",
      {{"logits", logits, input}, {"targets", targets, input}, {"stats", stats, output}},
      [&](HostLauncher& l) { cuda::cross_entropy_stats(l, logits, targets, first_token, stats); });
}

void ExecutedKernels::cross_entropy_gradient(const Tensor& logits, const Tensor& targets,
                                             std::int64_t first_token, const Tensor& lse,
                                             float scale) {
  run("cross_entropy_gradient",
      {{"logits", logits, in_out}, {"targets", targets, input}, {"lse", lse, input}},
      [&](HostLauncher& l) {
        cuda::cross_entropy_gradient(l, logits, targets, first_token, lse, scale);
      });
}

void ExecutedKernels::cross_entropy_combine(const Tensor& stats, const Tensor& targets,
                                            const Tensor& lse, const Tensor& losses) {
  run("cross_entropy_combine",
      {{"stats", stats, input},
       {"targets", targets, input},
       {"lse", lse, output},
       {"losses", losses, output}},
      [&](HostLauncher& l) { cuda::cross_entropy_combine(l, stats, targets, lse, losses); });
}

void ExecutedKernels::fill(const Tensor& x, float value) {
  run("fill", {{"x", x, output}}, [&](HostLauncher& l) { cuda::fill(l, x, value); });
}

void ExecutedKernels::copy(const Tensor& from, const Tensor& to) {
  run("copy", {{"from", from, input}, {"to", to, output}},
      [&](HostLauncher& l) { cuda::copy(l, from, to); });
}

void ExecutedKernels::add(const Tensor& x, const Tensor& y, const Tensor& z) {
  run("add", {{"x", x, input}, {"y", y, input}, {"z", z, output}},
      [&](HostLauncher& l) { cuda::add(l, x, y, z); });
}

void ExecutedKernels::accumulate(const Tensor& x, const Tensor& sum) {
  run("accumulate", {{"x", x, input}, {"sum", sum, in_out}},
      [&](HostLauncher& l) { cuda::accumulate(l, x, sum); });
}

void ExecutedKernels::scale(const Tensor& x, float factor) {
  run("scale", {{"x", x, in_out}}, [&](HostLauncher& l) { cuda::scale(l, x, factor); });
}

double ExecutedKernels::sum_of_squares(const Tensor& x) {
  double result = 0;
  run("sum_of_squares", {{"x", x, input}},
      [&](HostLauncher& l) { result = cuda::sum_of_squares(l, x); });
  return result;
}

double ExecutedKernels::sum(const Tensor& x) {
  double result = 0;
  run("sum", {{"x", x, input}}, [&](HostLauncher& l) { result = cuda::sum(l, x); });
  return result;
}

void ExecutedKernels::adamw(const AdamW& rule, const Tensor& gradient, const Tensor& master,
                            const Tensor& first_moment, const Tensor& second_moment,
                            const Tensor& parameter) {
  const bool separate = parameter.raw() != master.raw();
  const Tensor none;
  run("adamw",
      {{"gradient", gradient, input},
       {"master", master, in_out},
       {"first_moment", first_moment, in_out},
       {"second_moment", second_moment, in_out},
       {"parameter", separate ? parameter : none, output}},
      [&](HostLauncher& l) {
        cuda::adamw(l, rule, {gradient, master, first_moment, second_moment, parameter});
      });
}

void ExecutedKernels::sgd(const Sgd& rule, const Tensor& gradient, const Tensor& master,
                          const Tensor& momentum, const Tensor& parameter) {
  const bool separate = parameter.raw() != master.raw();
  const Tensor none;
  run("sgd",
      {{"gradient", gradient, input},
       {"master", master, in_out},
       {"momentum", momentum, in_out},
       {"parameter", separate ? parameter : none, output}},
      [&](HostLauncher& l) {
        cuda::sgd(l, rule, {gradient, master, momentum, {}, parameter});
      });
}

}  // namespace trireme::device::simt
