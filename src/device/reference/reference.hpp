// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include <cstdint>

/// Plain loops, one theme a file: what every other backend is compared with. Arguments, shapes
/// and meaning are those of `Kernels`. Elements are computed in fp32; sums along a row in double,
/// so that a difference found by a comparison is the other backend's.
namespace trireme::device::reference {

void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y);
void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx);
void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw,
                            const Tensor& d_bias);

void largest_magnitude(const Tensor& x, const Tensor& magnitude);
void quantise(const Tensor& x, const Tensor& magnitude, const Quantised& result);
void linear_forward_quantised(const Quantised& x, const Quantised& w, const Tensor& bias,
                              const Tensor& y);

void embedding_forward(const Tensor& tokens, const Tensor& table, std::int64_t first_token,
                       const Tensor& out);
void embedding_backward(const Tensor& tokens, const Tensor& d_out, std::int64_t first_token,
                        const Tensor& d_table);
void add_positions(const Tensor& x, const Tensor& table, std::int64_t seq,
                   std::int64_t first_position);
void add_positions_backward(const Tensor& dx, std::int64_t seq, const Tensor& d_table);

void norm_forward(const NormForward& norm);
void norm_backward(const NormBackward& norm);

void rotary(const Tensor& x, const Tensor& cos_table, const Tensor& sin_table,
            std::int64_t first_position, bool inverse);
void attention_forward(const Attention& attention);
void attention_backward(const AttentionBackward& attention);

void swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& y);
void swiglu_backward(const Tensor& dy, const Tensor& gate, const Tensor& up, const Tensor& d_gate,
                     const Tensor& d_up);
void gelu_forward(const Tensor& x, const Tensor& y);
void gelu_backward(const Tensor& dy, const Tensor& x, const Tensor& dx);
void dropout(const Tensor& x, const Dropout& mask, const Tensor& y);

void cross_entropy_stats(const Tensor& logits, const Tensor& targets, std::int64_t first_token,
                         const Tensor& stats);
void cross_entropy_gradient(const Tensor& logits, const Tensor& targets, std::int64_t first_token,
                            const Tensor& lse, float scale);
void cross_entropy_combine(const Tensor& stats, const Tensor& targets, const Tensor& lse,
                           const Tensor& losses);

void fill(const Tensor& x, float value);
void copy(const Tensor& from, const Tensor& to);
void add(const Tensor& x, const Tensor& y, const Tensor& z);
void accumulate(const Tensor& x, const Tensor& sum);
double sum_of_squares(const Tensor& x);
double sum(const Tensor& x);

void adamw(const AdamW& rule, const Tensor& gradient, const Tensor& master,
           const Tensor& first_moment, const Tensor& second_moment, const Tensor& parameter);
void sgd(const Sgd& rule, const Tensor& gradient, const Tensor& master, const Tensor& momentum,
         const Tensor& parameter);
void round_stochastically(const Tensor& master, const StochasticRounding& rounding,
                          const Tensor& parameter);

}  // namespace trireme::device::reference
