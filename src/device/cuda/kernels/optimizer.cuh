#pragma once

#include "device/cuda/kernels/launch.hpp"
#include "device/cuda/operations.hpp"

#include <cmath>

namespace trireme::device::cuda {

/// The master, and the parameter in its own type where there is one.
template <typename T>
struct Published {
  simt::Global<float> master;
  simt::Global<T> parameter;

  template <int N>
  __device__ void store(std::int64_t column, const Floats<N>& values) const {
    store_floats<N>(master, column, values);
    if (parameter) store_floats<N>(parameter, column, values);
  }
};

template <typename T>
struct AdamWRun {
  AdamW rule;
  float correction1 = 1.0F;
  float correction2 = 1.0F;
  simt::Global<const float> gradient;
  simt::Global<float> first;
  simt::Global<float> second;
  Published<T> out;

  template <int N>
  __device__ void run(std::int64_t, std::int64_t column) const {
    const auto gradients = load_floats<N>(gradient, column);
    auto m = load_floats<N>(first, column);
    auto v = load_floats<N>(second, column);
    auto p = load_floats<N>(out.master, column);
    for (int i = 0; i < N; ++i) {
      const float g = gradients[i] * rule.gradient_scale;
      m[i] = rule.beta1 * m[i] + (1.0F - rule.beta1) * g;
      v[i] = rule.beta2 * v[i] + (1.0F - rule.beta2) * g * g;
      const float update = (m[i] / correction1) / (sqrtf(v[i] / correction2) + rule.eps);
      p[i] -= rule.learning_rate * (update + rule.weight_decay * p[i]);
    }
    store_floats<N>(first, column, m);
    store_floats<N>(second, column, v);
    out.template store<N>(column, p);
  }
};

template <typename T>
struct SgdRun {
  Sgd rule;
  simt::Global<const float> gradient;
  simt::Global<float> momentum;
  Published<T> out;

  template <int N>
  __device__ void run(std::int64_t, std::int64_t column) const {
    const auto g = load_floats<N>(gradient, column);
    auto m = load_floats<N>(momentum, column);
    auto p = load_floats<N>(out.master, column);
    for (int i = 0; i < N; ++i) {
      m[i] = rule.momentum * m[i] + g[i] * rule.gradient_scale;
      p[i] -= rule.learning_rate * (m[i] + rule.weight_decay * p[i]);
    }
    store_floats<N>(momentum, column, m);
    out.template store<N>(column, p);
  }
};

/// The parameter, unless the master is the parameter.
inline Tensor separate_parameter(const OptimizerRuns& runs) {
  return runs.parameter.raw() == runs.master.raw() ? Tensor() : runs.parameter;
}

inline void expect_runs(const OptimizerRuns& runs, const Tensor& parameter) {
  const auto count = runs.gradient.element_count();
  for (const auto* run :
       {&runs.gradient, &runs.master, &runs.first_moment, &runs.second_moment, &parameter}) {
    TRIREME_EXPECT(!*run || (run->contiguous() && run->element_count() == count),
                   "optimizers work on contiguous runs of equal length");
  }
}

/// body(element, elements) with the parameter's type; as many at a time as one access of it moves.
template <typename Body>
void with_parameter(const OptimizerRuns& runs, const Tensor& parameter, const Body& body) {
  with_type(parameter ? parameter.dtype() : DType::f32, [&](auto element) {
    const bool packed = all_packable(pack_size<decltype(element)>, runs.gradient, runs.master,
                                     runs.first_moment, runs.second_moment, parameter);
    body(element, Elements{1, runs.gradient.element_count(), packed});
  });
}

template <typename L>
void adamw(L& launcher, const AdamW& rule, const OptimizerRuns& runs) {
  const auto parameter = separate_parameter(runs);
  expect_runs(runs, parameter);
  const auto correction = [&](float beta) {
    return static_cast<float>(1.0 -
                              std::pow(static_cast<double>(beta), static_cast<double>(rule.step)));
  };
  with_parameter(runs, parameter, [&](auto element, const Elements& elements) {
    using T = decltype(element);
    run_elements<pack_size<T>>(
        launcher, "adamw", elements,
        AdamWRun<T>{rule,
                    correction(rule.beta1),
                    correction(rule.beta2),
                    memory_of<const float>(launcher, runs.gradient),
                    memory_of<float>(launcher, runs.first_moment),
                    memory_of<float>(launcher, runs.second_moment),
                    {memory_of<float>(launcher, runs.master), memory_of<T>(launcher, parameter)}});
  });
}

template <typename L>
void sgd(L& launcher, const Sgd& rule, const OptimizerRuns& runs) {
  const auto parameter = separate_parameter(runs);
  expect_runs(runs, parameter);
  with_parameter(runs, parameter, [&](auto element, const Elements& elements) {
    using T = decltype(element);
    run_elements<pack_size<T>>(
        launcher, "sgd", elements,
        SgdRun<T>{rule,
                  memory_of<const float>(launcher, runs.gradient),
                  memory_of<float>(launcher, runs.first_moment),
                  {memory_of<float>(launcher, runs.master), memory_of<T>(launcher, parameter)}});
  });
}

}  // namespace trireme::device::cuda
