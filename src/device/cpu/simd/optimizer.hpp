// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/simd/lanes.hpp"

namespace trireme::device::cpu {

/// AdamW with everything that does not depend on the element worked out.
struct AdamWFactors {
  float gradient_scale = 1;
  float beta1 = 0;
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  /// 1 / (1 - beta2^step).
  float second_correction = 1;
  float eps = 0;
  /// learning rate / (1 - beta1^step).
  float step_size = 0;
  /// 1 - learning rate * weight decay.
  float kept = 1;
};

struct SgdFactors {
  float gradient_scale = 1;
  float momentum = 0;
  float learning_rate = 0;
  float kept = 1;
};

/// Runs of state; `parameter` is null when nothing is to be written besides the master.
template <typename T>
struct AdamWRun {
  const float* gradient = nullptr;
  float* master = nullptr;
  float* first_moment = nullptr;
  float* second_moment = nullptr;
  T* parameter = nullptr;
  std::int64_t count = 0;
};

template <typename T>
struct SgdRun {
  const float* gradient = nullptr;
  float* master = nullptr;
  float* momentum = nullptr;
  T* parameter = nullptr;
  std::int64_t count = 0;
};

template <typename T>
struct OptimizerFunctions {
  void (*adamw)(const AdamWFactors& rule, const AdamWRun<T>& run);
  void (*sgd)(const SgdFactors& rule, const SgdRun<T>& run);
};

struct OptimizerTable : PerType<OptimizerFunctions> {};

template <typename Vec, typename T>
void adamw_run(const AdamWFactors& rule, const AdamWRun<T>& run) {
  const Vec gradient_scale = Vec::of(rule.gradient_scale);
  const Vec beta1 = Vec::of(rule.beta1);
  const Vec one_minus_beta1 = Vec::of(rule.one_minus_beta1);
  const Vec beta2 = Vec::of(rule.beta2);
  const Vec one_minus_beta2 = Vec::of(rule.one_minus_beta2);
  const Vec correction = Vec::of(rule.second_correction);
  const Vec eps = Vec::of(rule.eps);
  const Vec step_size = Vec::of(rule.step_size);
  const Vec kept = Vec::of(rule.kept);
  for_lanes<Vec>(run.count, [&](std::int64_t i, auto extent) {
    const Vec g = load<Vec>(run.gradient + i, extent) * gradient_scale;
    const Vec m = fma(beta1, load<Vec>(run.first_moment + i, extent), one_minus_beta1 * g);
    const Vec v = fma(beta2, load<Vec>(run.second_moment + i, extent), one_minus_beta2 * g * g);
    const Vec update = m / (sqrt(v * correction) + eps);
    const Vec p = fnma(step_size, update, kept * load<Vec>(run.master + i, extent));
    store(run.first_moment + i, m, extent);
    store(run.second_moment + i, v, extent);
    store(run.master + i, p, extent);
    if (run.parameter != nullptr) store(run.parameter + i, p, extent);
  });
}

template <typename Vec, typename T>
void sgd_run(const SgdFactors& rule, const SgdRun<T>& run) {
  const Vec gradient_scale = Vec::of(rule.gradient_scale);
  const Vec momentum = Vec::of(rule.momentum);
  const Vec learning_rate = Vec::of(rule.learning_rate);
  const Vec kept = Vec::of(rule.kept);
  for_lanes<Vec>(run.count, [&](std::int64_t i, auto extent) {
    const Vec g = load<Vec>(run.gradient + i, extent) * gradient_scale;
    const Vec m = fma(momentum, load<Vec>(run.momentum + i, extent), g);
    const Vec p = fnma(learning_rate, m, kept * load<Vec>(run.master + i, extent));
    store(run.momentum + i, m, extent);
    store(run.master + i, p, extent);
    if (run.parameter != nullptr) store(run.parameter + i, p, extent);
  });
}

template <typename Vec, typename T>
constexpr OptimizerFunctions<T> optimizer_functions() {
  return {adamw_run<Vec, T>, sgd_run<Vec, T>};
}

template <typename Instructions>
constexpr OptimizerTable optimizer_table() {
  using Vec = typename Instructions::Vec;
  return {{optimizer_functions<Vec, float>(), optimizer_functions<Vec, Bf16>()}};
}

}  // namespace trireme::device::cpu
