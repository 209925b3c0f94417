// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

/// Operations of own kernels, with the contracts of `device::Kernels`. Defined in
/// device/cuda/kernels/*.cuh, which one file for each launcher instantiates.
namespace trireme::device::cuda {

template <typename L>
void embedding_forward(L& launcher, const Tensor& tokens, const Tensor& table,
                       std::int64_t first_token, const Tensor& out);
template <typename L>
void embedding_backward(L& launcher, const Tensor& tokens, const Tensor& d_out,
                        std::int64_t first_token, const Tensor& d_table);
template <typename L>
void add_positions(L& launcher, const Tensor& x, const Tensor& table, std::int64_t seq,
                   std::int64_t first_position);
template <typename L>
void add_positions_backward(L& launcher, const Tensor& dx, std::int64_t seq, const Tensor& d_table);

template <typename L>
void largest_magnitude(L& launcher, const Tensor& x, const Tensor& magnitude);
template <typename L>
void quantise(L& launcher, const Tensor& x, const Tensor& magnitude, const Quantised& result);

template <typename L>
void norm_forward(L& launcher, const NormForward& norm);
template <typename L>
void norm_backward(L& launcher, const NormBackward& norm);
/// sums += column sums of x: the gradient of a bias.
template <typename L>
void add_column_sums(L& launcher, const Tensor& x, const Tensor& sums);
/// y += bias in every row, where the library that computed y has not added it.
template <typename L>
void add_bias(L& launcher, const Tensor& bias, const Tensor& y);

/// The tables of a rotary embedding and where its rows begin in them.
struct RotaryTables {
  Tensor cos_table;
  Tensor sin_table;
  std::int64_t first_position = 0;
  bool inverse = false;
};
template <typename L>
void rotary(L& launcher, const Tensor& x, const RotaryTables& tables);
template <typename L>
void attention_forward(L& launcher, const Attention& attention);
template <typename L>
void attention_backward(L& launcher, const AttentionBackward& backward);

template <typename L>
void swiglu_forward(L& launcher, const Tensor& gate, const Tensor& up, const Tensor& y);
template <typename L>
void swiglu_backward(L& launcher, const Tensor& dy, const Tensor& gate, const Tensor& up,
                     const Tensor& d_gate, const Tensor& d_up);
template <typename L>
void gelu_forward(L& launcher, const Tensor& x, const Tensor& y);
template <typename L>
void gelu_backward(L& launcher, const Tensor& dy, const Tensor& x, const Tensor& dx);
template <typename L>
void dropout(L& launcher, const Tensor& x, const Dropout& mask, const Tensor& y);

template <typename L>
void cross_entropy_stats(L& launcher, const Tensor& logits, const Tensor& targets,
                         std::int64_t first_token, const Tensor& stats);
template <typename L>
void cross_entropy_combine(L& launcher, const Tensor& stats, const Tensor& targets,
                           const Tensor& lse, const Tensor& losses);
template <typename L>
void cross_entropy_gradient(L& launcher, const Tensor& logits, const Tensor& targets,
                            std::int64_t first_token, const Tensor& lse, float scale);

template <typename L>
void fill(L& launcher, const Tensor& x, float value);
template <typename L>
void copy(L& launcher, const Tensor& from, const Tensor& to);
template <typename L>
void add(L& launcher, const Tensor& x, const Tensor& y, const Tensor& z);
template <typename L>
void accumulate(L& launcher, const Tensor& x, const Tensor& sum);
template <typename L>
double sum_of_squares(L& launcher, const Tensor& x);
template <typename L>
double sum(L& launcher, const Tensor& x);
/// Sums that are left with the launcher.
template <typename L>
void start_sum_of_squares(L& launcher, const Tensor& x);
template <typename L>
void start_sum(L& launcher, const Tensor& x);

/// The f32 runs of an update, and the parameter that is written from `master`.
struct OptimizerRuns {
  Tensor gradient;
  Tensor master;
  Tensor first_moment;   // momentum for SGD
  Tensor second_moment;  // AdamW only
  Tensor parameter;
};
template <typename L>
void adamw(L& launcher, const AdamW& rule, const OptimizerRuns& runs);
template <typename L>
void sgd(L& launcher, const Sgd& rule, const OptimizerRuns& runs);
template <typename L>
void round_stochastically(L& launcher, const Tensor& master, const StochasticRounding& rounding,
                          const Tensor& parameter);

}  // namespace trireme::device::cuda
