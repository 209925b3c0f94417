#include "trireme/optim/optimizer.hpp"

#include <utility>

namespace trireme::optim {

using device::Tensor;

Rule rule_from(const config::Config& config) {
  Rule rule;
  const auto& name = config.text("optimizer.name");
  TRIREME_EXPECT(name == "adamw" || name == "sgd", "no update rule is called " + name);
  rule.kind = name == "sgd" ? RuleKind::sgd : RuleKind::adamw;
  rule.beta1 = static_cast<float>(config.real("optimizer.beta1"));
  rule.beta2 = static_cast<float>(config.real("optimizer.beta2"));
  rule.eps = static_cast<float>(config.real("optimizer.eps"));
  rule.momentum = static_cast<float>(config.real("optimizer.momentum"));
  rule.weight_decay = static_cast<float>(config.real("optimizer.weight_decay"));
  return rule;
}

Optimizer::Optimizer(const Rule& rule, std::vector<Segment> segments, std::int64_t state_size,
                     const Tensor& parameters, device::Arena& arena)
    : rule_(rule), segments_(std::move(segments)), parameters_(parameters) {
  const auto add = [&](const char* name) {
    states_.push_back({name, arena.allocate(device::DType::f32, {state_size})});
  };
  if (parameters.dtype() != device::DType::f32) {
    masters_ = arena.allocate(device::DType::f32, {state_size});
  }
  switch (rule.kind) {
    case RuleKind::adamw:
      add("adamw.first_moment");
      add("adamw.second_moment");
      break;
    case RuleKind::sgd:
      add("sgd.momentum");
      break;
  }
}

Tensor Optimizer::master(const Segment& segment) const {
  return masters_ ? masters_.slice(0, segment.state_begin, segment.flat.size())
                  : parameters_.slice(0, segment.flat.begin, segment.flat.size());
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
        kernels.adamw({.learning_rate = learning_rate,
                       .beta1 = rule_.beta1,
                       .beta2 = rule_.beta2,
                       .eps = rule_.eps,
                       .weight_decay = decay,
                       .gradient_scale = gradient_scale,
                       .step = step},
                      gradient, master(segment), state(0), state(1), parameter);
        break;
      case RuleKind::sgd:
        kernels.sgd({.learning_rate = learning_rate,
                     .momentum = rule_.momentum,
                     .weight_decay = decay,
                     .gradient_scale = gradient_scale},
                    gradient, master(segment), state(0), parameter);
        break;
    }
  }
}

void Optimizer::give_parameters(device::Kernels& kernels) {
  if (!masters_) return;
  for (const auto& segment : segments_) {
    kernels.copy(master(segment), parameters_.slice(0, segment.flat.begin, segment.flat.size()));
  }
}

}  // namespace trireme::optim
