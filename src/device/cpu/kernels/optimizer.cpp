// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/kernels/run.hpp"
#include "device/cpu/runtime/runs.hpp"
#include "device/cpu/simd/tables.hpp"
#include "device/stochastic_rounding.hpp"

#include <cmath>

namespace trireme::device::cpu {
namespace {

/// Calls body(place) with the address at which the parameter is to be written: null when the master
/// is enough.
template <typename Body>
void with_parameter(const Tensor& parameter, const Tensor& master, const Body& body) {
  if (!parameter || parameter.raw() == master.raw()) {
    float* nowhere = nullptr;
    body(nowhere);
    return;
  }
  with_type(parameter.dtype(), [&](auto element) { body(data_of<decltype(element)>(parameter)); });
}

template <typename T>
T* at(T* run, std::int64_t offset) {
  return run == nullptr ? nullptr : run + offset;
}

/// Elements that are rounded right after their update, while they are near.
constexpr std::int64_t rounded_together = 4096;

/// Elements [range.begin, range.end) of a run, row by row of their box.
void round_range(const Context& context, const StochasticRounding& rounding, Range range,
                 const float* master, Bf16* parameter) {
  const auto round = tables_of(context.isa).rounding.round;
  for (auto i = range.begin; i < range.end;) {
    const auto place = place_of(rounding, i);
    const auto count = std::min(place.left, range.end - i);
    round({rounding.seed, rounding.stream, static_cast<std::uint64_t>(place.number), master + i,
           parameter + i, count});
    i += count;
  }
}

/// update(range) writes the masters of a part of the run, and rounding follows while they are in
/// the cache.
template <typename Update>
void update_and_round(const Context& context, const StochasticRounding& rounding,
                      const Tensor& master, const Tensor& parameter, const Update& update) {
  parallel_for(*context.team, master.element_count(), elements_per_thread, [&](Range range) {
    for (auto begin = range.begin; begin < range.end; begin += rounded_together) {
      const Range part{begin, std::min(begin + rounded_together, range.end)};
      update(part);
      round_range(context, rounding, part, master.f32(), parameter.bf16());
    }
  });
}

/// True if the parameter is written from the master with stochastic rounding.
bool rounds(const StochasticRounding& rounding, const Tensor& parameter, const Tensor& master) {
  return rounding.active() && parameter && parameter.raw() != master.raw();
}

AdamWFactors factors_of(const AdamW& rule) {
  const auto step = static_cast<double>(rule.step);
  const auto correction1 = 1.0 - std::pow(static_cast<double>(rule.beta1), step);
  const auto correction2 = 1.0 - std::pow(static_cast<double>(rule.beta2), step);
  const auto rate = static_cast<double>(rule.learning_rate);
  return {rule.gradient_scale,
          rule.beta1,
          1.0F - rule.beta1,
          rule.beta2,
          1.0F - rule.beta2,
          static_cast<float>(1.0 / correction2),
          rule.eps,
          static_cast<float>(rate / correction1),
          static_cast<float>(1.0 - rate * static_cast<double>(rule.weight_decay))};
}

SgdFactors factors_of(const Sgd& rule) {
  return {rule.gradient_scale, rule.momentum, rule.learning_rate,
          static_cast<float>(1.0 - static_cast<double>(rule.learning_rate) *
                                       static_cast<double>(rule.weight_decay))};
}

}  // namespace

template <>
void run(Context& context, const AdamWUpdate& operation) {
  const auto& [rule, gradient, master, first_moment, second_moment, parameter] = operation;
  const auto count = gradient.element_count();
  const auto factors = factors_of(rule);
  const auto* g = gradient.f32();
  auto* p = master.f32();
  auto* m = first_moment.f32();
  auto* v = second_moment.f32();
  if (rounds(rule.rounding, parameter, master)) {
    const auto& functions = tables_of(context.isa).optimizer.of(float{});
    update_and_round(context, rule.rounding, master, parameter, [&](Range range) {
      const auto i = range.begin;
      functions.adamw(factors, {g + i, p + i, m + i, v + i, nullptr, range.count()});
    });
    return;
  }
  with_parameter(parameter, master, [&](auto* place) {
    const auto& functions =
        tables_of(context.isa).optimizer.of(std::remove_reference_t<decltype(*place)>{});
    parallel_for(*context.team, count, elements_per_thread, [&](Range range) {
      const auto i = range.begin;
      functions.adamw(factors, {g + i, p + i, m + i, v + i, at(place, i), range.count()});
    });
  });
}

template <>
void run(Context& context, const SgdUpdate& operation) {
  const auto& [rule, gradient, master, momentum, parameter] = operation;
  const auto count = gradient.element_count();
  const auto factors = factors_of(rule);
  const auto* g = gradient.f32();
  auto* p = master.f32();
  auto* m = momentum.f32();
  if (rounds(rule.rounding, parameter, master)) {
    const auto& functions = tables_of(context.isa).optimizer.of(float{});
    update_and_round(context, rule.rounding, master, parameter, [&](Range range) {
      const auto i = range.begin;
      functions.sgd(factors, {g + i, p + i, m + i, nullptr, range.count()});
    });
    return;
  }
  with_parameter(parameter, master, [&](auto* place) {
    const auto& functions =
        tables_of(context.isa).optimizer.of(std::remove_reference_t<decltype(*place)>{});
    parallel_for(*context.team, count, elements_per_thread, [&](Range range) {
      const auto i = range.begin;
      functions.sgd(factors, {g + i, p + i, m + i, at(place, i), range.count()});
    });
  });
}

template <>
void run(Context& context, const MeanMomentum& operation) {
  const auto& [decay, step, factor, gradient, momentum, update] = operation;
  const auto count = gradient.element_count();
  const bool nesterov = step == MeanMomentum::Step::nesterov;
  const float beta = decay;
  const float scale = factor;
  const float* const g = gradient.f32();
  float* const m = momentum.f32();
  float* const u = update.f32();
  parallel_for(*context.team, count, elements_per_thread, [=](Range range) {
    for (auto i = range.begin; i < range.end; ++i) {
      const float number = g[i] * scale;
      m[i] = beta * m[i] + (1.0F - beta) * number;
      u[i] = nesterov ? number + beta * (m[i] - number) : m[i];
    }
  });
}

template <>
void run(Context& context, const RoundStochastically& operation) {
  const auto& [master, rounding, parameter] = operation;
  update_and_round(context, rounding, master, parameter, [](Range) {});
}

}  // namespace trireme::device::cpu
