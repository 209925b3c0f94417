// SPDX-License-Identifier: Apache-2.0
#include "support/device/operand_kernels.hpp"

namespace trireme::device::test {
namespace {

constexpr auto input = Role::input;
constexpr auto output = Role::output;
constexpr auto in_out = Role::in_out;

Attention moved_attention(const Attention& attention, const OperandKernels::Placement& at) {
  Attention moved = attention;
  moved.q = at(attention.q);
  moved.k = at(attention.k);
  moved.v = at(attention.v);
  moved.out = at(attention.out);
  moved.lse = at(attention.lse);
  moved.dropout.row_base = at(attention.dropout.row_base);
  return moved;
}

}  // namespace

void OperandKernels::linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                                    const Tensor& y) {
  run("linear_forward", {{"x", x, input}, {"w", w, input}, {"bias", bias, input}, {"y", y, output}},
      [=](Kernels& k, const Placement& at) { k.linear_forward(at(x), at(w), at(bias), at(y)); });
}

void OperandKernels::linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  run("linear_backward_input", {{"dy", dy, input}, {"w", w, input}, {"dx", dx, output}},
      [=](Kernels& k, const Placement& at) { k.linear_backward_input(at(dy), at(w), at(dx)); });
}

void OperandKernels::linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw,
                                            const Tensor& d_bias) {
  run("linear_backward_weight",
      {{"dy", dy, input}, {"x", x, input}, {"dw", dw, in_out}, {"d_bias", d_bias, in_out}},
      [=](Kernels& k, const Placement& at) {
        k.linear_backward_weight(at(dy), at(x), at(dw), at(d_bias));
      });
}

void OperandKernels::largest_magnitude(const Tensor& x, const Tensor& magnitude) {
  run("largest_magnitude", {{"x", x, input}, {"magnitude", magnitude, output}},
      [=](Kernels& k, const Placement& at) { k.largest_magnitude(at(x), at(magnitude)); });
}

void OperandKernels::quantise(const Tensor& x, const Tensor& magnitude, const Quantised& result) {
  run("quantise",
      {{"x", x, input},
       {"magnitude", magnitude, input},
       {"codes", result.codes, output},
       {"unscale", result.unscale, output}},
      [=](Kernels& k, const Placement& at) {
        k.quantise(at(x), at(magnitude), {at(result.codes), at(result.unscale)});
      });
}

void OperandKernels::linear_forward_quantised(const Quantised& x, const Quantised& w,
                                              const Tensor& bias, const Tensor& y) {
  run("linear_forward_quantised",
      {{"x", x.codes, input},
       {"x_unscale", x.unscale, input},
       {"w", w.codes, input},
       {"w_unscale", w.unscale, input},
       {"bias", bias, input},
       {"y", y, output}},
      [=](Kernels& k, const Placement& at) {
        k.linear_forward_quantised({at(x.codes), at(x.unscale)}, {at(w.codes), at(w.unscale)},
                                   at(bias), at(y));
      });
}

void OperandKernels::linear_gelu_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                                         const Tensor& wide, const Tensor& y) {
  run("linear_gelu_forward",
      {{"x", x, input},
       {"w", w, input},
       {"bias", bias, input},
       {"wide", wide, output},
       {"y", y, output}},
      [=](Kernels& k, const Placement& at) {
        k.linear_gelu_forward(at(x), at(w), at(bias), at(wide), at(y));
      });
}

void OperandKernels::linear_backward_gelu(const Tensor& dy, const Tensor& w, const Tensor& wide,
                                          const Tensor& d_wide) {
  run("linear_backward_gelu",
      {{"dy", dy, input}, {"w", w, input}, {"wide", wide, input}, {"d_wide", d_wide, output}},
      [=](Kernels& k, const Placement& at) {
        k.linear_backward_gelu(at(dy), at(w), at(wide), at(d_wide));
      });
}

void OperandKernels::embedding_forward(const Tensor& tokens, const Tensor& table,
                                       std::int64_t first_token, const Tensor& out) {
  run("embedding_forward",
      {{"tokens", tokens, input}, {"table", table, input}, {"out", out, output}},
      [=](Kernels& k, const Placement& at) {
        k.embedding_forward(at(tokens), at(table), first_token, at(out));
      });
}

void OperandKernels::embedding_backward(const Tensor& tokens, const Tensor& d_out,
                                        std::int64_t first_token, const Tensor& d_table) {
  run("embedding_backward",
      {{"tokens", tokens, input}, {"d_out", d_out, input}, {"d_table", d_table, in_out}},
      [=](Kernels& k, const Placement& at) {
        k.embedding_backward(at(tokens), at(d_out), first_token, at(d_table));
      });
}

void OperandKernels::add_positions(const Tensor& x, const Tensor& table, std::int64_t seq,
                                   std::int64_t first_position) {
  run("add_positions", {{"x", x, in_out}, {"table", table, input}},
      [=](Kernels& k, const Placement& at) {
        k.add_positions(at(x), at(table), seq, first_position);
      });
}

void OperandKernels::add_positions_backward(const Tensor& dx, std::int64_t seq,
                                            const Tensor& d_table) {
  run("add_positions_backward", {{"dx", dx, input}, {"d_table", d_table, in_out}},
      [=](Kernels& k, const Placement& at) { k.add_positions_backward(at(dx), seq, at(d_table)); });
}

void OperandKernels::norm_forward(const NormForward& norm) {
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
      [=](Kernels& k, const Placement& at) {
        NormForward moved = norm;
        moved.x = at(norm.x);
        moved.residual = at(norm.residual);
        moved.sum = at(norm.residual ? norm.sum : none);
        moved.weight = at(norm.weight);
        moved.bias = at(norm.bias);
        moved.y = at(norm.y);
        moved.mean = at(norm.mean);
        moved.rstd = at(norm.rstd);
        k.norm_forward(moved);
      });
}

void OperandKernels::norm_backward(const NormBackward& norm) {
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
      [=](Kernels& k, const Placement& at) {
        NormBackward moved = norm;
        moved.dy = at(norm.dy);
        moved.x = at(norm.x);
        moved.weight = at(norm.weight);
        moved.mean = at(norm.kind == NormKind::layer ? norm.mean : none);
        moved.rstd = at(norm.rstd);
        moved.d_residual = at(norm.d_residual);
        moved.dx = at(norm.dx);
        moved.d_weight = at(norm.d_weight);
        moved.d_bias = at(norm.d_bias);
        k.norm_backward(moved);
      });
}

void OperandKernels::rotary(const Tensor& x, const Tensor& cos_table, const Tensor& sin_table,
                            std::int64_t first_position, bool inverse) {
  run("rotary",
      {{"x", x, in_out}, {"cos_table", cos_table, input}, {"sin_table", sin_table, input}},
      [=](Kernels& k, const Placement& at) {
        k.rotary(at(x), at(cos_table), at(sin_table), first_position, inverse);
      });
}

void OperandKernels::attention_forward(const Attention& attention) {
  run("attention_forward",
      {{"q", attention.q, input},
       {"k", attention.k, input},
       {"v", attention.v, input},
       {"row_base", attention.dropout.row_base, input},
       {"out", attention.out, output},
       {"lse", attention.lse, output}},
      [=](Kernels& k, const Placement& at) {
        k.attention_forward(moved_attention(attention, at));
      });
}

void OperandKernels::attention_backward(const AttentionBackward& backward) {
  const auto& forward = backward.forward;
  run("attention_backward",
      {{"q", forward.q, input},
       {"k", forward.k, input},
       {"v", forward.v, input},
       {"row_base", forward.dropout.row_base, input},
       {"out", forward.out, input},
       {"lse", forward.lse, input},
       {"d_out", backward.d_out, input},
       {"dq", backward.dq, output},
       {"dk", backward.dk, output},
       {"dv", backward.dv, output}},
      [=](Kernels& k, const Placement& at) {
        k.attention_backward({moved_attention(backward.forward, at), at(backward.d_out),
                              at(backward.dq), at(backward.dk), at(backward.dv)});
      });
}

void OperandKernels::swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& y) {
  run("swiglu_forward", {{"gate", gate, input}, {"up", up, input}, {"y", y, output}},
      [=](Kernels& k, const Placement& at) { k.swiglu_forward(at(gate), at(up), at(y)); });
}

void OperandKernels::swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up,
                                     const Tensor& d_gate, const Tensor& d_up) {
  run("swiglu_backward",
      {{"dy", dy, input},
       {"gate", gate, input},
       {"up", up, input},
       {"d_gate", d_gate, output},
       {"d_up", d_up, output}},
      [=](Kernels& k, const Placement& at) {
        k.swiglu_backward(at(dy), at(gate), at(up), at(d_gate), at(d_up));
      });
}

void OperandKernels::gelu_forward(const Tensor& x, const Tensor& y) {
  run("gelu_forward", {{"x", x, input}, {"y", y, output}},
      [=](Kernels& k, const Placement& at) { k.gelu_forward(at(x), at(y)); });
}

void OperandKernels::gelu_backward(const Tensor& dy, const Tensor& x, const Tensor& dx) {
  run("gelu_backward", {{"dy", dy, input}, {"x", x, input}, {"dx", dx, output}},
      [=](Kernels& k, const Placement& at) { k.gelu_backward(at(dy), at(x), at(dx)); });
}

void OperandKernels::dropout(const Tensor& x, const Dropout& mask, const Tensor& y) {
  run("dropout", {{"x", x, input}, {"row_base", mask.row_base, input}, {"y", y, output}},
      [=](Kernels& k, const Placement& at) {
        auto moved = mask;
        moved.row_base = at(mask.row_base);
        k.dropout(at(x), moved, at(y));
      });
}

void OperandKernels::cross_entropy_stats(const Tensor& logits, const Tensor& targets,
                                         std::int64_t first_token, const Tensor& stats) {
  run("cross_entropy_stats",
      {{"logits", logits, input}, {"targets", targets, input}, {"stats", stats, output}},
      [=](Kernels& k, const Placement& at) {
        k.cross_entropy_stats(at(logits), at(targets), first_token, at(stats));
      });
}

void OperandKernels::cross_entropy_gradient(const Tensor& logits, const Tensor& targets,
                                            std::int64_t first_token, const Tensor& lse,
                                            float scale) {
  run("cross_entropy_gradient",
      {{"logits", logits, in_out}, {"targets", targets, input}, {"lse", lse, input}},
      [=](Kernels& k, const Placement& at) {
        k.cross_entropy_gradient(at(logits), at(targets), first_token, at(lse), scale);
      });
}

void OperandKernels::cross_entropy_combine(const Tensor& stats, const Tensor& targets,
                                           const Tensor& lse, const Tensor& losses) {
  run("cross_entropy_combine",
      {{"stats", stats, input},
       {"targets", targets, input},
       {"lse", lse, output},
       {"losses", losses, output}},
      [=](Kernels& k, const Placement& at) {
        k.cross_entropy_combine(at(stats), at(targets), at(lse), at(losses));
      });
}

void OperandKernels::fill(const Tensor& x, float value) {
  run("fill", {{"x", x, output}}, [=](Kernels& k, const Placement& at) { k.fill(at(x), value); });
}

void OperandKernels::copy(const Tensor& from, const Tensor& to) {
  run("copy", {{"from", from, input}, {"to", to, output}},
      [=](Kernels& k, const Placement& at) { k.copy(at(from), at(to)); });
}

void OperandKernels::add(const Tensor& x, const Tensor& y, const Tensor& z) {
  run("add", {{"x", x, input}, {"y", y, input}, {"z", z, output}},
      [=](Kernels& k, const Placement& at) { k.add(at(x), at(y), at(z)); });
}

void OperandKernels::accumulate(const Tensor& x, const Tensor& sum) {
  run("accumulate", {{"x", x, input}, {"sum", sum, in_out}},
      [=](Kernels& k, const Placement& at) { k.accumulate(at(x), at(sum)); });
}

double OperandKernels::sum_of_squares(const Tensor& x) {
  double result = 0;
  run("sum_of_squares", {{"x", x, input}},
      [&](Kernels& k, const Placement& at) { result = k.sum_of_squares(at(x)); });
  return result;
}

double OperandKernels::sum(const Tensor& x) {
  double result = 0;
  run("sum", {{"x", x, input}}, [&](Kernels& k, const Placement& at) { result = k.sum(at(x)); });
  return result;
}

void OperandKernels::adamw(const AdamW& rule, const Tensor& gradient, const Tensor& master,
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
      [=](Kernels& k, const Placement& at) {
        k.adamw(rule, at(gradient), at(master), at(first_moment), at(second_moment),
                at(separate ? parameter : none));
      });
}

void OperandKernels::sgd(const Sgd& rule, const Tensor& gradient, const Tensor& master,
                         const Tensor& momentum, const Tensor& parameter) {
  const bool separate = parameter.raw() != master.raw();
  const Tensor none;
  run("sgd",
      {{"gradient", gradient, input},
       {"master", master, in_out},
       {"momentum", momentum, in_out},
       {"parameter", separate ? parameter : none, output}},
      [=](Kernels& k, const Placement& at) {
        k.sgd(rule, at(gradient), at(master), at(momentum), at(separate ? parameter : none));
      });
}

void OperandKernels::round_stochastically(const Tensor& master, const StochasticRounding& rounding,
                                          const Tensor& parameter) {
  run("round_stochastically", {{"master", master, input}, {"parameter", parameter, output}},
      [=](Kernels& k, const Placement& at) {
        k.round_stochastically(at(master), rounding, at(parameter));
      });
}

}  // namespace trireme::device::test
