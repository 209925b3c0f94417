// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/tensor.hpp"

#include <cstdint>

namespace trireme::device {

// Optimizers, on contiguous runs of equal length; f32 but `parameter`, which is written from
// `master` in its own type (or is empty, or is `master` itself).

/// Source of the bits that round a run of one tensor's elements to bf16 at random: up with
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
  Tensor parameter{};

  void check() const;
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
  Tensor parameter{};

  void check() const;
  void operands(auto visit) {
    visit("gradient", gradient, Role::input);
    visit("momentum", momentum, Role::in_out);
    const auto role = parameter.raw() == master.raw() ? Role::in_out : Role::output;
    visit("parameter", parameter, role);
    visit("master", master, Role::in_out);
  }
};

/// Momentum as a mean: m = beta * m + (1 - beta) * g. What it gives is m, or with Nesterov's step
/// g + beta * (m - g) (Jordan et al. 2024, Muon). All are f32.
struct MeanMomentum {
  static constexpr const char* name = "mean_momentum";
  enum class Step { plain, nesterov };
  float beta = 0;
  Step step = Step::nesterov;
  /// Factor on the gradient before use: clipping.
  float gradient_scale = 1.0F;
  Tensor gradient;
  Tensor momentum;
  Tensor update;

  void check() const;
  void operands(auto visit) {
    visit("gradient", gradient, Role::input);
    visit("momentum", momentum, Role::in_out);
    visit("update", update, Role::output);
  }
};

/// parameter = the master's numbers, as an update with this rounding writes them.
struct RoundStochastically {
  static constexpr const char* name = "round_stochastically";
  Tensor master;  // f32
  StochasticRounding rounding;
  Tensor parameter;  // bf16

  void check() const;
  void operands(auto visit) {
    visit("master", master, Role::input);
    visit("parameter", parameter, Role::output);
  }
};

using OptimizerOperations =
    OperationList<AdamWUpdate, SgdUpdate, MeanMomentum, RoundStochastically>;

}  // namespace trireme::device
