// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/options.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/layout/flat.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::optim {

using RuleKind = config::UpdateRule;

/// Rounding of parameters that are not fp32, when they are written from their masters.
enum class ParameterRounding {
  nearest,
  stochastic  ///< bf16 alone: see device::StochasticRounding
};

struct Rule {
  RuleKind kind = RuleKind::adamw;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float eps = 1e-8F;
  float momentum = 0.9F;
  float weight_decay = 0.1F;
  ParameterRounding rounding = ParameterRounding::nearest;
  /// Seed of stochastic rounding.
  std::uint64_t seed = 0;
};
Rule rule_from(const config::Options& options);

/// Moments that a rule keeps, f32 for each element that it updates: "adamw.first_moment".
std::vector<std::string> state_names(RuleKind rule);

/// A run of elements that this rank updates: where they lie in the flat parameter and gradient
/// buffers, and where their state begins in the state buffers.
struct Segment {
  layout::FlatRange flat{};
  std::int64_t state_begin = 0;
  bool decays = true;
  /// For stochastic rounding: the one tensor that its elements belong to, as a stream, and where
  /// they lie in it. The seed comes with the step.
  device::StochasticRounding place{};
};

/// Element-wise update rules over the part of the flat buffers that a rank owns. Parameters in
/// fp32 are their own master copy; others get one here.
class Optimizer {
 public:
  /// `state_size`: elements of each state buffer, at least the end of the last segment.
  Optimizer(const Rule& rule, std::vector<Segment> segments, std::int64_t state_size,
            const device::Tensor& parameters, device::Arena& arena);

  /// One update from reduced gradients (f32, flat). `step` counts from 1.
  void update(device::Kernels& kernels, const device::Tensor& gradients, float learning_rate,
              float gradient_scale, std::int64_t step);
  /// Parameters become what the masters are now (after initialisation or loading), rounded as the
  /// update of `step` rounds them; 0: before the first.
  void give_parameters(device::Kernels& kernels, std::int64_t step);

  struct State {
    std::string name;
    device::Tensor values;  // f32 [state_size]
  };
  /// Moments by name ("adamw.first_moment"): what a checkpoint must hold beside the masters.
  const std::vector<State>& states() const { return states_; }
  /// f32 master of a segment's elements.
  device::Tensor master(const Segment& segment) const;
  const std::vector<Segment>& segments() const { return segments_; }

 private:
  device::StochasticRounding rounding_of(const Segment& segment, std::int64_t step) const;

  Rule rule_;
  std::vector<Segment> segments_;
  device::Tensor parameters_;
  device::Tensor masters_;  // f32 [state_size], or empty when parameters are f32
  std::vector<State> states_;
};

}  // namespace trireme::optim
