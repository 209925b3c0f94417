// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/optimizer.hpp"

#include "trireme/base/philox.hpp"

#include <utility>

namespace trireme::optim {

using device::Tensor;

Rule rule_from(const config::Options& options) {
  const auto& optimizer = options.optimizer;
  return {.kind = optimizer.name,
          .beta1 = static_cast<float>(optimizer.beta1),
          .beta2 = static_cast<float>(optimizer.beta2),
          .eps = static_cast<float>(optimizer.eps),
          .momentum = static_cast<float>(optimizer.momentum),
          .weight_decay = static_cast<float>(optimizer.weight_decay),
          .rounding = options.numerics.stochastic_rounding ? ParameterRounding::stochastic
                                                           : ParameterRounding::nearest,
          .seed = static_cast<std::uint64_t>(options.train.seed)};
}

std::vector<std::string> state_names(RuleKind rule) {
  switch (rule) {
    case RuleKind::adamw:
      return {"adamw.first_moment", "adamw.second_moment"};
    case RuleKind::sgd:
      return {"sgd.momentum"};
  }
  return {};
}

Optimizer::Optimizer(const Rule& rule, std::vector<Segment> segments, std::int64_t state_size,
                     const Tensor& parameters, device::Arena& arena)
    : rule_(rule), segments_(std::move(segments)), parameters_(parameters) {
  if (parameters.dtype() != device::DType::f32) {
    masters_ = arena.allocate(device::DType::f32, {state_size});
  }
  for (auto& name : state_names(rule.kind)) {
    states_.push_back({std::move(name), arena.allocate(device::DType::f32, {state_size})});
  }
}

Tensor Optimizer::master(const Segment& segment) const {
  return masters_ ? masters_.slice(0, segment.state_begin, segment.flat.size())
                  : parameters_.slice(0, segment.flat.begin, segment.flat.size());
}

/// Each step has a seed of its own, which a run that goes on from it finds again.
device::StochasticRounding Optimizer::rounding_of(const Segment& segment, std::int64_t step) const {
  if (rule_.rounding == ParameterRounding::nearest) return {};
  auto rounding = segment.place;
  const auto words = base::philox(rule_.seed, base::stream_of("optimizer.rounding"),
                                  static_cast<std::uint64_t>(step));
  rounding.seed = (std::uint64_t{words[1]} << 32) | words[0];
  TRIREME_EXPECT(rounding.active(), "stochastic rounding knows where in its tensor an element is");
  return rounding;
}

void Optimizer::update(device::Kernels& kernels, const Tensor& gradients, float learning_rate,
                       float gradient_scale, std::int64_t step) {
  for (const auto& segment : segments_) {
    const auto count = segment.flat.size();
    const auto gradient = gradients.slice(0, segment.flat.begin, count);
    const auto parameter = parameters_.slice(0, segment.flat.begin, count);
    const auto state = [&](std::size_t index) {
      return states_[index].values.slice(0, segment.state_begin, count);
    };
    const float decay = segment.decays ? rule_.weight_decay : 0.0F;
    switch (rule_.kind) {
      case RuleKind::adamw:
        kernels.issue(device::AdamWUpdate{{.learning_rate = learning_rate,
                                           .beta1 = rule_.beta1,
                                           .beta2 = rule_.beta2,
                                           .eps = rule_.eps,
                                           .weight_decay = decay,
                                           .gradient_scale = gradient_scale,
                                           .step = step,
                                           .rounding = rounding_of(segment, step)},
                                          gradient,
                                          master(segment),
                                          state(0),
                                          state(1),
                                          parameter});
        break;
      case RuleKind::sgd:
        kernels.issue(device::SgdUpdate{{.learning_rate = learning_rate,
                                         .momentum = rule_.momentum,
                                         .weight_decay = decay,
                                         .gradient_scale = gradient_scale,
                                         .rounding = rounding_of(segment, step)},
                                        gradient,
                                        master(segment),
                                        state(0),
                                        parameter});
        break;
    }
  }
}

void Optimizer::give_parameters(device::Kernels& kernels, std::int64_t step) {
  if (!masters_) return;
  for (const auto& segment : segments_) {
    const auto parameter = parameters_.slice(0, segment.flat.begin, segment.flat.size());
    const auto rounding = rounding_of(segment, step);
    if (rounding.active()) {
      kernels.issue(device::RoundStochastically{master(segment), rounding, parameter});
    } else {
      kernels.issue(device::Copy{master(segment), parameter});
    }
  }
}

}  // namespace trireme::optim
