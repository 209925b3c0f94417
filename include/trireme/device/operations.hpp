// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"

#include <cstdint>
#include <variant>

/// Operations of kernels, as values: what is computed, from which tensors into which. Each says its
/// name, its operands with their shapes, and what it may do with each (`operands()` visits them as
/// name, tensor, role). `Kernels::issue()` computes one. Every operation takes tensors of f32 or
/// bf16 where the comment says nothing else, the same type within one operation unless said.
///
/// A new operation is a struct here, in one of the lists at the end, and a `run()` of
/// device/reference, device/cpu and device/cuda/kernels each; docs/contributing.md shows one.
namespace trireme::device {

/// What an operation does with an operand. An output is written everywhere and read only where it
/// has been written.
enum class Role { input, output, in_out };

// GEMMs. Weights are [out, in], as Hugging Face's linear layers are.

/// y = x * transpose(w) + bias. y may be f32 when x and w are bf16.
struct LinearForward {
  static constexpr const char* name = "linear_forward";
  Tensor x;     // [rows, in]
  Tensor w;     // [out, in]
  Tensor bias;  // [out], or empty
  Tensor y;     // [rows, out]

  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("w", w, Role::input);
    visit("bias", bias, Role::input);
    visit("y", y, Role::output);
  }
};

/// dx = dy * w.
struct LinearBackwardInput {
  static constexpr const char* name = "linear_backward_input";
  Tensor dy;  // [rows, out]
  Tensor w;   // [out, in]
  Tensor dx;  // [rows, in]

  void operands(auto visit) {
    visit("dy", dy, Role::input);
    visit("w", w, Role::input);
    visit("dx", dx, Role::output);
  }
};

/// dw += transpose(dy) * x; d_bias += column sums of dy.
struct LinearBackwardWeight {
  static constexpr const char* name = "linear_backward_weight";
  Tensor dy;      // [rows, out]
  Tensor x;       // [rows, in]
  Tensor dw;      // f32 [out, in]
  Tensor d_bias;  // f32 [out], or empty

  void operands(auto visit) {
    visit("dy", dy, Role::input);
    visit("x", x, Role::input);
    visit("dw", dw, Role::in_out);
    visit("d_bias", d_bias, Role::in_out);
  }
};

/// wide = x * transpose(w) + bias; y = gelu(wide), of a `wide` that may not be rounded yet.
struct LinearGeluForward {
  static constexpr const char* name = "linear_gelu_forward";
  Tensor x;     // [rows, in]
  Tensor w;     // [out, in]
  Tensor bias;  // [out], or empty
  Tensor wide;  // [rows, out]
  Tensor y;     // [rows, out]

  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("w", w, Role::input);
    visit("bias", bias, Role::input);
    visit("wide", wide, Role::output);
    visit("y", y, Role::output);
  }
};

/// d_wide = gelu'(wide) * (dy * w): the gradient of what a gelu before a linear layer took.
struct LinearBackwardGelu {
  static constexpr const char* name = "linear_backward_gelu";
  Tensor dy;      // [rows, out]
  Tensor w;       // [out, in]
  Tensor wide;    // [rows, in]
  Tensor d_wide;  // [rows, in]

  void operands(auto visit) {
    visit("dy", dy, Role::input);
    visit("w", w, Role::input);
    visit("wide", wide, Role::input);
    visit("d_wide", d_wide, Role::output);
  }
};

// GEMMs in FP8, with one scale a tensor, that of the numbers at hand. Sums are in fp32. What is not
// finite becomes NaN, and so does all that is multiplied by it.

/// A tensor times a power of two, rounded to e4m3, and the factor that undoes it.
struct Quantised {
  Tensor codes;    // e4m3, contiguous
  Tensor unscale;  // f32 [1]
};

/// magnitude = the largest |x|; NaN or infinite if an element is.
struct LargestMagnitude {
  static constexpr const char* name = "largest_magnitude";
  Tensor x;
  Tensor magnitude;  // f32 [1]

  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("magnitude", magnitude, Role::output);
  }
};

/// codes = x * e4m3_scale(magnitude), rounded; unscale undoes it. A magnitude below that of x
/// saturates.
struct Quantise {
  static constexpr const char* name = "quantise";
  Tensor x;
  Tensor magnitude;  // f32 [1]
  Quantised result;  // like x

  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("magnitude", magnitude, Role::input);
    visit("codes", result.codes, Role::output);
    visit("unscale", result.unscale, Role::output);
  }
};

/// y = (x * transpose(w)) * both unscales + bias; bias and y are bf16.
struct LinearForwardQuantised {
  static constexpr const char* name = "linear_forward_quantised";
  Quantised x;  // [rows, in]
  Quantised w;  // [out, in]
  Tensor bias;  // [out], or empty
  Tensor y;     // [rows, out]

  void operands(auto visit) {
    visit("x", x.codes, Role::input);
    visit("x_unscale", x.unscale, Role::input);
    visit("w", w.codes, Role::input);
    visit("w_unscale", w.unscale, Role::input);
    visit("bias", bias, Role::input);
    visit("y", y, Role::output);
  }
};

// Embedding. Rows of tokens outside [first_token, first_token + rows of table) become zero: they
// live on another tensor-parallel rank.

/// out[r] = table[tokens[r] - first_token].
struct EmbeddingForward {
  static constexpr const char* name = "embedding_forward";
  Tensor tokens;  // i32 [rows]
  Tensor table;   // [local vocabulary, width]
  std::int64_t first_token = 0;
  Tensor out;  // [rows, width]

  void operands(auto visit) {
    visit("tokens", tokens, Role::input);
    visit("table", table, Role::input);
    visit("out", out, Role::output);
  }
};

/// d_table[tokens[r] - first_token] += d_out[r].
struct EmbeddingBackward {
  static constexpr const char* name = "embedding_backward";
  Tensor tokens;  // i32 [rows]
  Tensor d_out;   // [rows, width]
  std::int64_t first_token = 0;
  Tensor d_table;  // f32 [local vocabulary, width]

  void operands(auto visit) {
    visit("tokens", tokens, Role::input);
    visit("d_out", d_out, Role::input);
    visit("d_table", d_table, Role::in_out);
  }
};

/// x[r] += table[first_position + r % seq].
struct AddPositions {
  static constexpr const char* name = "add_positions";
  Tensor x;      // [rows, width]
  Tensor table;  // [positions, width]
  std::int64_t seq = 0;
  std::int64_t first_position = 0;

  void operands(auto visit) {
    visit("x", x, Role::in_out);
    visit("table", table, Role::input);
  }
};

/// d_table[r % seq] += dx[r].
struct AddPositionsBackward {
  static constexpr const char* name = "add_positions_backward";
  Tensor dx;  // [rows, width]
  std::int64_t seq = 0;
  Tensor d_table;  // f32 [positions, width]

  void operands(auto visit) {
    visit("dx", dx, Role::input);
    visit("d_table", d_table, Role::in_out);
  }
};

// Layers.

/// Numbers that a dropout mask uses. The mask of element (row, column) depends on the key and on
/// global indices alone, so every layout draws the same mask.
struct Dropout {
  float rate = 0.0F;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  /// Global index of row r is first_row + r; of column c first_column + c, of `width` columns.
  std::int64_t first_row = 0;
  std::int64_t first_column = 0;
  std::int64_t width = 0;
  /// i32 [2]: the low and the high word of a number that first_row counts from, read when the
  /// kernel runs; empty: 0. A CUDA graph that is captured once runs with other numbers later.
  Tensor row_base{};
};

enum class NormKind { rms, layer };

/// y = norm(x + residual) * weight + bias over the last dimension; statistics in fp32.
/// RMS: Zhang & Sennrich 2019; layer: Ba et al. 2016. Rows are all dimensions but the last.
struct NormForward {
  static constexpr const char* name = "norm_forward";
  NormKind kind = NormKind::rms;
  Tensor x;         // [rows..., width]
  Tensor residual;  // like x, or empty
  Tensor sum;       // like x: x + residual, or empty when there is no residual
  Tensor weight;    // [width]
  Tensor bias;      // [width], or empty
  Tensor y;         // like x
  Tensor mean;      // f32 [rows], layer norm only, or empty
  Tensor rstd;      // f32 [rows], or empty when no backward follows
  float eps = 1e-5F;

  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("residual", residual, Role::input);
    if (residual) visit("sum", sum, Role::output);
    visit("weight", weight, Role::input);
    visit("bias", bias, Role::input);
    visit("y", y, Role::output);
    visit("mean", mean, Role::output);
    visit("rstd", rstd, Role::output);
  }
};

/// dx = gradient through the norm + d_residual.
struct NormBackward {
  static constexpr const char* name = "norm_backward";
  NormKind kind = NormKind::rms;
  Tensor dy;          // [rows..., width]
  Tensor x;           // what was normalised: x + residual of the forward
  Tensor weight;      // [width]
  Tensor mean;        // f32 [rows], layer norm only
  Tensor rstd;        // f32 [rows]
  Tensor d_residual;  // like dy, or empty; may be dx itself
  Tensor dx;          // like dy
  Tensor d_weight;    // f32 [width], added to
  Tensor d_bias;      // f32 [width], added to, or empty
  float eps = 1e-5F;  // as in the forward

  void operands(auto visit) {
    visit("dy", dy, Role::input);
    visit("x", x, Role::input);
    visit("weight", weight, Role::input);
    if (kind == NormKind::layer) visit("mean", mean, Role::input);
    visit("rstd", rstd, Role::input);
    visit("d_residual", d_residual, Role::input);
    visit("dx", dx, Role::output);
    visit("d_weight", d_weight, Role::in_out);
    visit("d_bias", d_bias, Role::in_out);
  }
};

/// Rotates pairs (i, i + head_dim / 2) of every head in place (Su et al. 2021, half-split as in
/// Llama). `inverse` rotates back: the gradient. Position of row s of a sequence is
/// first_position + s.
struct Rotary {
  static constexpr const char* name = "rotary";
  Tensor x;          // [batch, seq, heads, head_dim]
  Tensor cos_table;  // f32 [positions, head_dim / 2]
  Tensor sin_table;  // like cos_table
  std::int64_t first_position = 0;
  bool inverse = false;

  void operands(auto visit) {
    visit("x", x, Role::in_out);
    visit("cos_table", cos_table, Role::input);
    visit("sin_table", sin_table, Role::input);
  }
};

/// Causal or full attention of grouped heads; fp32 softmax, never a whole score matrix.
/// Query row i of a sequence sees key rows j <= i + (key length - query length) when causal.
struct Attention {
  static constexpr const char* name = "attention_forward";
  Tensor q;    // [batch, query_seq, heads, head_dim]
  Tensor k;    // [batch, key_seq, kv_heads, head_dim]
  Tensor v;    // [batch, key_seq, kv_heads, head_dim]
  Tensor out;  // [batch, query_seq, heads, head_dim]
  Tensor lse;  // f32 [batch, heads, query_seq]: log of the sum of exponentials; empty: not kept
  float scale = 1.0F;
  bool causal = true;
  /// Rows are (sequence * total heads + head) * query_seq + query, columns key positions:
  /// first_row counts sequences, first_column the rank's first head, width all heads.
  Dropout dropout;

  void operands(auto visit) { operands(visit, Role::output); }
  /// `results`: role of out and lse, which the backward reads.
  void operands(auto& visit, Role results) {
    visit("q", q, Role::input);
    visit("k", k, Role::input);
    visit("v", v, Role::input);
    visit("row_base", dropout.row_base, Role::input);
    visit("out", out, results);
    visit("lse", lse, results);
  }
};

struct AttentionBackward {
  static constexpr const char* name = "attention_backward";
  Attention forward;
  Tensor d_out;  // like out
  Tensor dq;     // like q
  Tensor dk;     // like k
  Tensor dv;     // like v

  void operands(auto visit) {
    forward.operands(visit, Role::input);
    visit("d_out", d_out, Role::input);
    visit("dq", dq, Role::output);
    visit("dk", dk, Role::output);
    visit("dv", dv, Role::output);
  }
};

/// y = silu(gate) * up.
struct SwigluForward {
  static constexpr const char* name = "swiglu_forward";
  Tensor gate;
  Tensor up;  // like gate
  Tensor y;   // like gate

  void operands(auto visit) {
    visit("gate", gate, Role::input);
    visit("up", up, Role::input);
    visit("y", y, Role::output);
  }
};

struct SwigluBackward {
  static constexpr const char* name = "swiglu_backward";
  Tensor dy;
  Tensor gate;    // like dy
  Tensor up;      // like dy
  Tensor d_gate;  // like dy
  Tensor d_up;    // like dy

  void operands(auto visit) {
    visit("dy", dy, Role::input);
    visit("gate", gate, Role::input);
    visit("up", up, Role::input);
    visit("d_gate", d_gate, Role::output);
    visit("d_up", d_up, Role::output);
  }
};

/// y = gelu(x), in the tanh form (Hendrycks & Gimpel 2016), GPT-2's.
struct GeluForward {
  static constexpr const char* name = "gelu_forward";
  Tensor x;
  Tensor y;  // like x

  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("y", y, Role::output);
  }
};

/// dx = gelu'(x) * dy.
struct GeluBackward {
  static constexpr const char* name = "gelu_backward";
  Tensor dy;
  Tensor x;   // like dy
  Tensor dx;  // like dy; may be dy

  void operands(auto visit) {
    visit("dy", dy, Role::input);
    visit("x", x, Role::input);
    visit("dx", dx, Role::output);
  }
};

/// y = x kept with probability 1 - rate and divided by it; also its own backward.
struct ApplyDropout {
  static constexpr const char* name = "dropout";
  Tensor x;
  Dropout mask;
  Tensor y;  // like x; may be x

  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("row_base", mask.row_base, Role::input);
    visit("y", y, Role::output);
  }
};

// Cross-entropy over a vocabulary of which this rank has columns
// [first_token, first_token + columns).

/// Per row: stats[0] = max, stats[1] = sum of exp(logit - max), stats[2] = the target's logit
/// (0 when it lives elsewhere or the target is negative, which means "ignore").
struct CrossEntropyStats {
  static constexpr const char* name = "cross_entropy_stats";
  Tensor logits;   // [rows, columns]
  Tensor targets;  // i32 [rows]
  std::int64_t first_token = 0;
  Tensor stats;  // f32 [3, rows]

  void operands(auto visit) {
    visit("logits", logits, Role::input);
    visit("targets", targets, Role::input);
    visit("stats", stats, Role::output);
  }
};

/// In place: logits become (softmax - one_hot(target)) * scale; 0 where the target is ignored.
struct CrossEntropyGradient {
  static constexpr const char* name = "cross_entropy_gradient";
  Tensor logits;   // [rows, columns]
  Tensor targets;  // i32 [rows]
  std::int64_t first_token = 0;
  Tensor lse;  // f32 [rows]
  float scale = 1.0F;

  void operands(auto visit) {
    visit("logits", logits, Role::in_out);
    visit("targets", targets, Role::input);
    visit("lse", lse, Role::input);
  }
};

/// Joins the stats of all parts of a vocabulary: lse = log of the sum of exp(logit), loss = lse -
/// target's logit (0 where the target is negative).
struct CrossEntropyCombine {
  static constexpr const char* name = "cross_entropy_combine";
  Tensor stats;    // f32 [parts, 3, rows]
  Tensor targets;  // i32 [rows]
  Tensor lse;      // f32 [rows]
  Tensor losses;   // f32 [rows]

  void operands(auto visit) {
    visit("stats", stats, Role::input);
    visit("targets", targets, Role::input);
    visit("lse", lse, Role::output);
    visit("losses", losses, Role::output);
  }
};

// Plain arithmetic; shapes are equal.

/// x = value.
struct Fill {
  static constexpr const char* name = "fill";
  Tensor x;
  float value = 0.0F;

  void operands(auto visit) { visit("x", x, Role::output); }
};

/// to = from, between types and strides.
struct Copy {
  static constexpr const char* name = "copy";
  Tensor from;
  Tensor to;

  void operands(auto visit) {
    visit("from", from, Role::input);
    visit("to", to, Role::output);
  }
};

/// z = x + y; any of the three may be the same.
struct Add {
  static constexpr const char* name = "add";
  Tensor x;
  Tensor y;
  Tensor z;

  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("y", y, Role::input);
    visit("z", z, Role::output);
  }
};

/// sum += x.
struct Accumulate {
  static constexpr const char* name = "accumulate";
  Tensor x;
  Tensor sum;  // f32

  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("sum", sum, Role::in_out);
  }
};

// Optimizers, on contiguous runs of equal length; f32 but `parameter`, which is written from
// `master` in its own type (or is empty, or is `master` itself).

/// Where the bits come from that round a run of one tensor's elements to bf16 at random: up with
/// the probability of what is cut off, so that the mean keeps it. Each element has its number in
/// the whole tensor, row-major; the bits depend on it, the seed and the stream alone, so every
/// layout rounds alike. The run lies, row-major, in a box of the tensor.
struct StochasticRounding {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  /// Elements of the box before the run.
  std::int64_t begin = 0;
  /// Width of the box's rows; 0: numbers are rounded to the nearest.
  std::int64_t width = 0;
  /// Width of the tensor's rows.
  std::int64_t stride = 0;
  /// Number of the box's first element.
  std::int64_t first = 0;

  constexpr bool active() const { return width > 0; }
};

/// AdamW (Loshchilov & Hutter 2019), bias-corrected; decay is decoupled.
struct AdamW {
  float learning_rate = 0;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float eps = 1e-8F;
  float weight_decay = 0;
  /// Factor on the gradient before use: clipping.
  float gradient_scale = 1.0F;
  /// Counts from 1.
  std::int64_t step = 1;
  /// Rounding of the parameter, which is bf16 where this is active.
  StochasticRounding rounding{};
};

struct AdamWUpdate {
  static constexpr const char* name = "adamw";
  AdamW rule;
  Tensor gradient;
  Tensor master;
  Tensor first_moment;
  Tensor second_moment;
  Tensor parameter;

  void operands(auto visit) {
    visit("gradient", gradient, Role::input);
    visit("first_moment", first_moment, Role::in_out);
    visit("second_moment", second_moment, Role::in_out);
    const auto role = parameter.raw() == master.raw() ? Role::in_out : Role::output;
    visit("parameter", parameter, role);
    visit("master", master, Role::in_out);
  }
};

/// Momentum SGD: m = momentum * m + g; p -= lr * (m + decay * p).
struct Sgd {
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
  float gradient_scale = 1.0F;
  StochasticRounding rounding{};
};

struct SgdUpdate {
  static constexpr const char* name = "sgd";
  Sgd rule;
  Tensor gradient;
  Tensor master;
  Tensor momentum;
  Tensor parameter;

  void operands(auto visit) {
    visit("gradient", gradient, Role::input);
    visit("momentum", momentum, Role::in_out);
    const auto role = parameter.raw() == master.raw() ? Role::in_out : Role::output;
    visit("parameter", parameter, role);
    visit("master", master, Role::in_out);
  }
};

/// parameter = the master's numbers, as an update with this rounding writes them.
struct RoundStochastically {
  static constexpr const char* name = "round_stochastically";
  Tensor master;  // f32
  StochasticRounding rounding;
  Tensor parameter;  // bf16

  void operands(auto visit) {
    visit("master", master, Role::input);
    visit("parameter", parameter, Role::output);
  }
};

// Lists of all operations.

template <typename... Operations>
struct OperationList {
  /// A pointer to one of them.
  using Pointer = std::variant<const Operations*...>;
  template <typename Operation>
  static constexpr bool holds = (std::is_same_v<Operation, Operations> || ...);
};

namespace detail {
template <typename... Lists>
struct Join;
template <typename... A>
struct Join<OperationList<A...>> {
  using List = OperationList<A...>;
};
template <typename... A, typename... B, typename... Rest>
struct Join<OperationList<A...>, OperationList<B...>, Rest...> {
  using List = typename Join<OperationList<A..., B...>, Rest...>::List;
};
}  // namespace detail

/// All operations of some lists.
template <typename... Lists>
using Joined = typename detail::Join<Lists...>::List;

/// Operations that multiply matrices; most backends ask a library.
using GemmOperations =
    OperationList<LinearForward, LinearBackwardInput, LinearBackwardWeight, LinearGeluForward,
                  LinearBackwardGelu, LinearForwardQuantised>;
using AttentionOperations = OperationList<Attention, AttentionBackward>;
/// Operations that reduce over rows or columns.
using RowOperations = OperationList<NormForward, NormBackward, CrossEntropyStats,
                                    CrossEntropyGradient, CrossEntropyCombine>;
/// Operations that go element by element, or over a whole tensor.
using ElementOperations =
    OperationList<LargestMagnitude, Quantise, EmbeddingForward, EmbeddingBackward, AddPositions,
                  AddPositionsBackward, Rotary, SwigluForward, SwigluBackward, GeluForward,
                  GeluBackward, ApplyDropout, Fill, Copy, Add, Accumulate, AdamWUpdate, SgdUpdate,
                  RoundStochastically>;
using Operations = Joined<GemmOperations, AttentionOperations, RowOperations, ElementOperations>;

/// Any one operation, by reference: it must not outlive what it was made from.
class Operation {
 public:
  template <typename One>
    requires Operations::holds<One>
  Operation(const One& one) : operation_(&one) {}

  /// Calls the visitor with the operation itself.
  template <typename Visitor>
  decltype(auto) visit(Visitor&& visitor) const {
    return std::visit([&](const auto* one) -> decltype(auto) { return visitor(*one); }, operation_);
  }
  /// "gelu_forward".
  const char* name() const {
    return visit([](const auto& one) { return one.name; });
  }
  /// The operation, if it is of this kind; else null.
  template <typename One>
  const One* get_if() const {
    const auto* const one = std::get_if<const One*>(&operation_);
    return one != nullptr ? *one : nullptr;
  }

 private:
  Operations::Pointer operation_;
};

}  // namespace trireme::device
