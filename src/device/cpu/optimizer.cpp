#include "device/cpu/optimizer.hpp"

#include "device/cpu/runs.hpp"
#include "device/cpu/simd/tables.hpp"

#include <cmath>

namespace trireme::device::cpu {
namespace {

void expect_run(const Tensor& run, std::int64_t count) {
  TRIREME_EXPECT(run.contiguous() && run.element_count() == count,
                 "optimizers work on contiguous runs of equal length");
}

/// Calls body(place) with where the parameter is to be written: null when the master is enough.
template <typename Body>
void with_parameter(const Tensor& parameter, const Tensor& master, const Body& body) {
  if (!parameter || parameter.raw() == master.raw()) {
    float* nowhere = nullptr;
    body(nowhere);
    return;
  }
  expect_run(parameter, master.element_count());
  with_type(parameter.dtype(), [&](auto element) { body(data_of<decltype(element)>(parameter)); });
}

template <typename T>
T* at(T* run, std::int64_t offset) {
  return run == nullptr ? nullptr : run + offset;
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

void adamw(const Context& context, const AdamW& rule, const AdamWOperands& operands) {
  const auto& [gradient, master, first_moment, second_moment, parameter] = operands;
  const auto count = gradient.element_count();
  for (const auto* run : {&gradient, &master, &first_moment, &second_moment}) {
    expect_run(*run, count);
  }
  const auto factors = factors_of(rule);
  const auto* g = gradient.f32();
  auto* p = master.f32();
  auto* m = first_moment.f32();
  auto* v = second_moment.f32();
  with_parameter(parameter, master, [&](auto* place) {
    const auto& functions =
        tables_of(context.isa).optimizer.of(std::remove_reference_t<decltype(*place)>{});
    parallel_for(context.threads, count, elements_per_thread, [&](Range range) {
      const auto i = range.begin;
      functions.adamw(factors, {g + i, p + i, m + i, v + i, at(place, i), range.count()});
    });
  });
}

void sgd(const Context& context, const Sgd& rule, const Tensor& gradient, const Tensor& master,
         const Tensor& momentum, const Tensor& parameter) {
  const auto count = gradient.element_count();
  for (const auto* run : {&gradient, &master, &momentum}) expect_run(*run, count);
  const auto factors = factors_of(rule);
  const auto* g = gradient.f32();
  auto* p = master.f32();
  auto* m = momentum.f32();
  with_parameter(parameter, master, [&](auto* place) {
    const auto& functions =
        tables_of(context.isa).optimizer.of(std::remove_reference_t<decltype(*place)>{});
    parallel_for(context.threads, count, elements_per_thread, [&](Range range) {
      const auto i = range.begin;
      functions.sgd(factors, {g + i, p + i, m + i, at(place, i), range.count()});
    });
  });
}

}  // namespace trireme::device::cpu
