// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/matrix_rule.hpp"

#include "side_factors.hpp"

namespace trireme::optim {

void MatrixRule::prepare(device::Kernels& kernels, const device::Tensor& gradient,
                         float gradient_scale, std::span<const device::Tensor>,
                         const device::Tensor& to) const {
  scale(kernels, gradient, gradient_scale, to);
}

std::unique_ptr<MatrixRule> make_matrix_rule(const Rule& rule, device::DType products) {
  switch (rule.kind) {
    case RuleKind::muon:
      return make_muon(rule.muon, products);
    case RuleKind::shampoo:
      return make_shampoo(rule);
    case RuleKind::soap:
      return make_soap(rule);
    case RuleKind::adamw:
    case RuleKind::sgd:
      break;
  }
  return nullptr;
}

const RuleTraits& traits(RuleKind rule) {
  static constexpr RuleTraits adamw{.name = "adamw"};
  static constexpr RuleTraits sgd{.name = "sgd", .momentum = 0.9};
  static constexpr RuleTraits muon{
      .name = "muon", .updates_matrices = true, .shares_matrices = true, .momentum = 0.95};
  static constexpr RuleTraits shampoo{
      .name = "shampoo", .updates_matrices = true, .has_owner_states = true, .max_side = 8192};
  static constexpr RuleTraits soap{
      .name = "soap", .updates_matrices = true, .has_owner_states = true, .max_side = 10000};
  switch (rule) {
    case RuleKind::adamw:
      return adamw;
    case RuleKind::sgd:
      return sgd;
    case RuleKind::muon:
      return muon;
    case RuleKind::shampoo:
      return shampoo;
    case RuleKind::soap:
      return soap;
  }
  return adamw;
}

Rule rule_from(const config::Options& options) {
  const auto& optimizer = options.optimizer;
  const auto& defaults = traits(optimizer.name);
  const auto momentum =
      static_cast<float>(optimizer.momentum.value_or(defaults.momentum.value_or(Rule{}.momentum)));
  const auto rate = optimizer.learning_rate;
  const auto adamw_rate = optimizer.adamw_learning_rate.value_or(rate);
  using Momentum = device::MeanMomentum::Step;
  return {.kind = optimizer.name,
          .beta1 = static_cast<float>(optimizer.beta1),
          .beta2 = static_cast<float>(optimizer.beta2),
          .eps = static_cast<float>(optimizer.eps),
          .momentum = momentum,
          .weight_decay = static_cast<float>(optimizer.weight_decay),
          .muon = {.momentum = momentum,
                   .step = optimizer.nesterov ? Momentum::nesterov : Momentum::plain,
                   .newton_schulz = {.coefficients = optimizer.ns_coefficients,
                                     .steps = static_cast<int>(optimizer.ns_steps)},
                   .scale = optimizer.scale},
          .factors = {.root_every = optimizer.root_every,
                      .epsilon = static_cast<float>(optimizer.epsilon),
                      .max_side = optimizer.max_side.value_or(
                          defaults.max_side.value_or(FactorRule{}.max_side))},
          .group_bytes = optimizer.group_bytes,
          .adamw_rate = rate > 0 ? adamw_rate / rate : 1.0,
          .rounding = options.numerics.stochastic_rounding ? ParameterRounding::stochastic
                                                           : ParameterRounding::nearest,
          .seed = static_cast<std::uint64_t>(options.train.seed)};
}

std::vector<std::string> state_names(const Rule& rule, Content content) {
  if (content == Content::matrix) {
    if (const auto matrices = make_matrix_rule(rule, device::DType::f32)) {
      return matrices->state_names();
    }
  }
  if (rule.kind == RuleKind::sgd) return {"sgd.momentum"};
  return {"adamw.first_moment", "adamw.second_moment"};
}

}  // namespace trireme::optim
