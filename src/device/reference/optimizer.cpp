// SPDX-License-Identifier: Apache-2.0
#include "device/elements.hpp"
#include "device/reference/reference.hpp"
#include "device/stochastic_rounding.hpp"

#include <cmath>

namespace trireme::device::reference {

template <>
void run(const RoundStochastically& operation) {
  const auto& [master, rounding, parameter] = operation;
  for (std::int64_t i = 0; i < master.element_count(); ++i) {
    const auto number = place_of(rounding, i).number;
    const auto words = rounding_words(rounding, number / roundings_together);
    const auto bits = rounding_bits(words, number % roundings_together);
    parameter.bf16()[i] = to_bf16_stochastically(master.f32()[i], bits);
  }
}

namespace {

/// Writes the master's numbers in the parameter's own type.
void publish(const Tensor& master, const StochasticRounding& rounding, const Tensor& parameter) {
  if (!parameter || parameter.raw() == master.raw()) return;
  if (rounding.active()) {
    run(RoundStochastically{master, rounding, parameter});
    return;
  }
  with_type(parameter.dtype(), [&](auto element) {
    auto* place = data_of<decltype(element)>(parameter);
    for (std::int64_t i = 0; i < master.element_count(); ++i) assign(place[i], master.f32()[i]);
  });
}

}  // namespace

template <>
void run(const AdamWUpdate& operation) {
  const auto& [rule, gradient, master, first_moment, second_moment, parameter] = operation;
  const auto count = gradient.element_count();
  const auto step = static_cast<double>(rule.step);
  const auto correction1 =
      static_cast<float>(1.0 - std::pow(static_cast<double>(rule.beta1), step));
  const auto correction2 =
      static_cast<float>(1.0 - std::pow(static_cast<double>(rule.beta2), step));
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = gradient.f32()[i] * rule.gradient_scale;
    float& m = first_moment.f32()[i];
    float& v = second_moment.f32()[i];
    float& p = master.f32()[i];
    m = rule.beta1 * m + (1.0F - rule.beta1) * g;
    v = rule.beta2 * v + (1.0F - rule.beta2) * g * g;
    const float update = (m / correction1) / (std::sqrt(v / correction2) + rule.eps);
    p -= rule.learning_rate * (update + rule.weight_decay * p);
  }
  publish(master, rule.rounding, parameter);
}

template <>
void run(const SgdUpdate& operation) {
  const auto& [rule, gradient, master, momentum, parameter] = operation;
  const auto count = gradient.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    float& m = momentum.f32()[i];
    float& p = master.f32()[i];
    m = rule.momentum * m + gradient.f32()[i] * rule.gradient_scale;
    p -= rule.learning_rate * (m + rule.weight_decay * p);
  }
  publish(master, rule.rounding, parameter);
}

template <>
void run(const MeanMomentum& operation) {
  const auto& [beta, step, gradient_scale, gradient, momentum, update] = operation;
  const auto count = gradient.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = gradient.f32()[i] * gradient_scale;
    float& m = momentum.f32()[i];
    m = beta * m + (1.0F - beta) * g;
    update.f32()[i] = step == MeanMomentum::Step::nesterov ? g + beta * (m - g) : m;
  }
}

}  // namespace trireme::device::reference
