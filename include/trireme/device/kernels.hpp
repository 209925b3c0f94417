// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/device/attention_choice.hpp"
#include "trireme/device/device.hpp"
#include "trireme/device/gemm_tuning.hpp"
#include "trireme/device/library_memory.hpp"
#include "trireme/device/tensor.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace trireme::device {

/// Which numbers a dropout mask uses. The mask of element (row, column) depends on the key and
/// on global indices alone, so every layout draws the same mask.
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
};

/// dx = gradient through the norm + d_residual.
struct NormBackward {
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
};

/// Causal or full attention of grouped heads; fp32 softmax, never a whole score matrix.
/// Query row i of a sequence sees key rows j <= i + (key length - query length) when causal.
struct Attention {
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
};

struct AttentionBackward {
  Attention forward;
  Tensor d_out;  // like out
  Tensor dq;     // like q
  Tensor dk;     // like k
  Tensor dv;     // like v
};

/// A tensor times a power of two, rounded to e4m3, and the factor that undoes it.
struct Quantised {
  Tensor codes;    // e4m3, contiguous
  Tensor unscale;  // f32 [1]
};

/// Where the bits come from that round a run of one tensor's elements to bf16 at random: up with
/// the probability of what is cut off, so that the mean keeps it. Each element has its number in
/// the whole tensor, row-major; the bits depend on it, the seed and the stream alone, so every
/// layout rounds alike. The run lies, row-major, in a box of the tensor.
struct StochasticRounding {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  /// Elements of the box before the run.
  std::int64_t begin = 0;
  /// Of the box's rows; 0: numbers are rounded to the nearest.
  std::int64_t width = 0;
  /// Of the tensor's rows.
  std::int64_t stride = 0;
  /// The number of the box's first element.
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
  /// Of the parameter, which is bf16 where this is active.
  StochasticRounding rounding{};
};

/// Momentum SGD: m = momentum * m + g; p -= lr * (m + decay * p).
struct Sgd {
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
  float gradient_scale = 1.0F;
  StochasticRounding rounding{};
};

/// What a device computes. An instance issues to one stream of one device, in order; host
/// backends compute before they return. Every function takes tensors of f32 or bf16 where the
/// comment says nothing else, the same type within one call unless said. Sums are in fp32 and
/// their order never depends on the number of threads.
class Kernels {
 public:
  virtual ~Kernels() = default;
  /// "reference", "cpu", "cuda", "measuring".
  virtual const char* name() const = 0;
  /// Where tensors lie, and the order in which everything here runs.
  virtual Device& device() { return host_device(); }
  /// Libraries that compute here: a line for people, or nothing.
  virtual std::string libraries() const { return {}; }
  /// By what attention of this size will be computed; no sentence where there is no choice. A
  /// failure (ExitCode::topology) if nothing here computes it.
  virtual base::Result<AttentionText> attention_text(const AttentionSize&) const {
    return AttentionText{};
  }
  /// What those hold of the device's memory at this moment.
  virtual std::vector<LibraryMemory> library_memory() const { return {}; }
  /// Autotuning of GEMMs; null where there is none.
  virtual GemmTuning* gemm_tuning() { return nullptr; }

  // GEMMs. Weights are [out, in], as Hugging Face's linear layers are.

  /// y = x * transpose(w) + bias. y may be f32 when x and w are bf16.
  virtual void linear_forward(const Tensor& x,       // [rows, in]
                              const Tensor& w,       // [out, in]
                              const Tensor& bias,    // [out], or empty
                              const Tensor& y) = 0;  // [rows, out]
  /// dx = dy * w.
  virtual void linear_backward_input(const Tensor& dy,       // [rows, out]
                                     const Tensor& w,        // [out, in]
                                     const Tensor& dx) = 0;  // [rows, in]
  /// dw += transpose(dy) * x; d_bias += column sums of dy.
  virtual void linear_backward_weight(const Tensor& dy,           // [rows, out]
                                      const Tensor& x,            // [rows, in]
                                      const Tensor& dw,           // f32 [out, in]
                                      const Tensor& d_bias) = 0;  // f32 [out], or empty
  /// wide = x * transpose(w) + bias; y = gelu(wide), of a `wide` that may not be rounded yet.
  virtual void linear_gelu_forward(const Tensor& x,     // [rows, in]
                                   const Tensor& w,     // [out, in]
                                   const Tensor& bias,  // [out], or empty
                                   const Tensor& wide,  // [rows, out]
                                   const Tensor& y);    // [rows, out]
  /// d_wide = gelu'(wide) * (dy * w): the gradient of what a gelu before a linear layer took.
  virtual void linear_backward_gelu(const Tensor& dy,       // [rows, out]
                                    const Tensor& w,        // [out, in]
                                    const Tensor& wide,     // [rows, in]
                                    const Tensor& d_wide);  // [rows, in]

  // GEMMs in FP8, with one scale a tensor, that of the numbers at hand. Sums are in fp32. What
  // is not finite becomes NaN, and so does all that is multiplied by it.

  /// magnitude = the largest |x|; NaN or infinite if an element is.
  virtual void largest_magnitude(const Tensor& x,
                                 const Tensor& magnitude) = 0;  // f32 [1]
  /// codes = x * e4m3_scale(magnitude), rounded; unscale undoes it. A magnitude below
  /// that of x saturates.
  virtual void quantise(const Tensor& x, const Tensor& magnitude, const Quantised& result) = 0;
  /// y = (x * transpose(w)) * both unscales + bias; bias and y are bf16.
  virtual void linear_forward_quantised(const Quantised& x,    // [rows, in]
                                        const Quantised& w,    // [out, in]
                                        const Tensor& bias,    // [out], or empty
                                        const Tensor& y) = 0;  // [rows, out]

  // Embedding. Rows of tokens outside [first_token, first_token + rows of table) become zero:
  // they live on another tensor-parallel rank.

  virtual void embedding_forward(const Tensor& tokens,  // i32 [rows]
                                 const Tensor& table,   // [local vocabulary, width]
                                 std::int64_t first_token,
                                 const Tensor& out) = 0;  // [rows, width]
  virtual void embedding_backward(const Tensor& tokens, const Tensor& d_out,
                                  std::int64_t first_token,
                                  const Tensor& d_table) = 0;  // f32, added to
  /// x[r] += table[first_position + r % seq].
  virtual void add_positions(const Tensor& x,      // [rows, width]
                             const Tensor& table,  // [positions, width]
                             std::int64_t seq, std::int64_t first_position) = 0;
  virtual void add_positions_backward(const Tensor& dx, std::int64_t seq,
                                      const Tensor& d_table) = 0;  // f32, added to

  // Layers.

  virtual void norm_forward(const NormForward& norm) = 0;
  virtual void norm_backward(const NormBackward& norm) = 0;
  /// Rotates pairs (i, i + head_dim / 2) of every head in place (Su et al. 2021, half-split as in
  /// Llama). `inverse` rotates back: the gradient. Position of row s of a sequence is
  /// first_position + s.
  virtual void rotary(const Tensor& x,          // [batch, seq, heads, head_dim]
                      const Tensor& cos_table,  // f32 [positions, head_dim / 2]
                      const Tensor& sin_table,  // like cos_table
                      std::int64_t first_position, bool inverse) = 0;
  virtual void attention_forward(const Attention& attention) = 0;
  virtual void attention_backward(const AttentionBackward& attention) = 0;
  /// y = silu(gate) * up.
  virtual void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& y) = 0;
  virtual void swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up,
                               const Tensor& d_gate, const Tensor& d_up) = 0;
  /// The tanh form (Hendrycks & Gimpel 2016), GPT-2's.
  virtual void gelu_forward(const Tensor& x, const Tensor& y) = 0;
  /// dx may be dy.
  virtual void gelu_backward(const Tensor& dy, const Tensor& x, const Tensor& dx) = 0;
  /// y = x kept with probability 1 - rate and divided by it; also its own backward. y may be x.
  virtual void dropout(const Tensor& x, const Dropout& mask, const Tensor& y) = 0;

  // Cross-entropy over a vocabulary of which this rank has columns
  // [first_token, first_token + columns).

  /// Per row: stats[0] = max, stats[1] = sum of exp(logit - max), stats[2] = the target's logit
  /// (0 when it lives elsewhere or the target is negative, which means "ignore").
  virtual void cross_entropy_stats(const Tensor& logits,   // [rows, columns]
                                   const Tensor& targets,  // i32 [rows]
                                   std::int64_t first_token,
                                   const Tensor& stats) = 0;  // f32 [3, rows]
  /// In place: logits become (softmax - one_hot(target)) * scale; 0 where the target is ignored.
  virtual void cross_entropy_gradient(const Tensor& logits, const Tensor& targets,
                                      std::int64_t first_token,
                                      const Tensor& lse,  // f32 [rows]
                                      float scale) = 0;

  /// Joins the stats of all parts of a vocabulary: lse = log of the sum of exp(logit), loss =
  /// lse - target's logit (0 where the target is negative).
  virtual void cross_entropy_combine(const Tensor& stats,        // f32 [parts, 3, rows]
                                     const Tensor& targets,      // i32 [rows]
                                     const Tensor& lse,          // f32 [rows]
                                     const Tensor& losses) = 0;  // f32 [rows]

  // Plain arithmetic; shapes are equal.

  virtual void fill(const Tensor& x, float value) = 0;
  /// Between types and strides.
  virtual void copy(const Tensor& from, const Tensor& to) = 0;
  /// z = x + y; any of the three may be the same.
  virtual void add(const Tensor& x, const Tensor& y, const Tensor& z) = 0;
  /// sum (f32) += x.
  virtual void accumulate(const Tensor& x, const Tensor& sum) = 0;
  /// f32 only. A fixed tree over fixed chunks, in double; the host waits for it.
  virtual double sum_of_squares(const Tensor& x) = 0;
  /// Likewise for the plain sum.
  virtual double sum(const Tensor& x) = 0;
  /// The same numbers without a wait: the host gets them all together, later.
  virtual void start_sum_of_squares(const Tensor& x) { started_.push_back(sum_of_squares(x)); }
  virtual void start_sum(const Tensor& x) { started_.push_back(sum(x)); }
  /// Of all sums that were started since the last call, in the order of their start. The host waits
  /// once.
  virtual std::vector<double> finish_sums() { return std::exchange(started_, {}); }

  // Optimizers, on contiguous runs of equal length; f32 but `parameter`, which is written from
  // `master` in its own type (or is empty, or is `master` itself).

  virtual void adamw(const AdamW& rule, const Tensor& gradient, const Tensor& master,
                     const Tensor& first_moment, const Tensor& second_moment,
                     const Tensor& parameter) = 0;
  virtual void sgd(const Sgd& rule, const Tensor& gradient, const Tensor& master,
                   const Tensor& momentum, const Tensor& parameter) = 0;
  /// parameter = the master's numbers, as an update with this rounding writes them.
  virtual void round_stochastically(const Tensor& master,  // f32
                                    const StochasticRounding& rounding,
                                    const Tensor& parameter) = 0;  // bf16

  /// All work issued so far is done when this returns.
  virtual void synchronize() = 0;

 private:
  std::vector<double> started_;
};

/// Plain loops: the oracle of every other backend.
std::unique_ptr<Kernels> make_reference_kernels();
/// How GEMMs are cut for threads (`numerics.deterministic`).
enum class Tiling {
  for_threads,  ///< as many tiles as keep the threads busy: the fastest
  by_shape,     ///< the same tiles for any number of threads, which so changes no bit
};
/// OpenMP threads, oneDNN GEMMs, AVX2 or AVX-512 chosen at run time.
std::unique_ptr<Kernels> make_cpu_kernels(int threads, Tiling tiling = Tiling::for_threads);
/// A GPU of this node, by its number as CUDA counts; own kernels, cuBLASLt and cuDNN on one
/// stream. Tensors lie in arenas of its device(). A failure (ExitCode::topology) says what this
/// build or node lacks.
base::Result<std::unique_ptr<Kernels>> make_cuda_kernels(int gpu,
                                                         const AttentionChoice& attention = {});
/// PCI bus ids of the GPUs that this process may use, by their numbers: "0000:1b:00.0". Fails like
/// make_cuda_kernels().
base::Result<std::vector<std::string>> gpu_bus_ids();
/// Does nothing: with measuring arenas, a whole step costs microseconds and touches no memory.
std::unique_ptr<Kernels> make_measuring_kernels();
/// Likewise, and writes down each GEMM that is asked for.
std::unique_ptr<Kernels> make_recording_kernels(std::vector<GemmCall>& calls);

}  // namespace trireme::device
