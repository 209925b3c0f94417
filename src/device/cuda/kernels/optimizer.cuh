// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/launch.hpp"
#include "device/cuda/kernels/own_operations.hpp"
#include "device/stochastic_rounding.hpp"

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

/// The bits of eight neighbours of a run that share no counter, or lie in two rows of their box.
__device__ inline RoundingWords scattered_words(const StochasticRounding& rounding,
                                                std::int64_t index) {
  RoundingWords taken{};
  RoundingWords words{};
  RoundingPlace place;
  for (int i = 0; i < roundings_together; ++i) {
    const bool new_row = place.left == 0;
    if (new_row) place = place_of(rounding, index + i);
    const auto which = place.number % roundings_together;
    if (new_row || which == 0) words = rounding_words(rounding, place.number / roundings_together);
    // Bits are shifted down as they come, so that every index is a constant.
    taken = {(taken[0] >> 16) | (taken[1] << 16), (taken[1] >> 16) | (taken[2] << 16),
             (taken[2] >> 16) | (taken[3] << 16),
             (taken[3] >> 16) | (rounding_bits(words, which) << 16)};
    ++place.number;
    --place.left;
  }
  return taken;
}

/// Elements of a run from `index` on as bf16.
template <int N>
__device__ simt::Pack<Bf16, N> rounded(const StochasticRounding& rounding, std::int64_t index,
                                       const Floats<N>& values) {
  const auto place = place_of(rounding, index);
  const auto which = place.number % roundings_together;
  const auto group = place.number / roundings_together;
  simt::Pack<Bf16, N> pack;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  if constexpr (N == 1) {
    const auto words = rounding_words(rounding, group);
    pack[0] = to_bf16_stochastically(values[0], rounding_bits(words, which));
  } else {
    static_assert(N == roundings_together);
    const bool together = which == 0 && place.left >= N;
    const auto words =
        together ? rounding_words(rounding, group) : scattered_words(rounding, index);
    for (int i = 0; i < N; ++i) {
      pack[i] = to_bf16_stochastically(values[i], rounding_bits(words, i));
    }
  }
  return pack;
}

/// Stands for the type of a bf16 parameter that is rounded at random.
struct AtRandom {};

template <>
struct Published<AtRandom> {
  simt::Global<float> master;
  simt::Global<Bf16> parameter;
  StochasticRounding rounding;

  template <int N>
  __device__ void store(std::int64_t column, const Floats<N>& values) const {
    store_floats<N>(master, column, values);
    parameter.template store_pack<N>(column, rounded<N>(rounding, column, values));
  }
};

struct RoundRun {
  simt::Global<const float> master;
  simt::Global<Bf16> parameter;
  StochasticRounding rounding;

  template <int N>
  __device__ void run(std::int64_t, std::int64_t column) const {
    const auto values = load_floats<N>(master, column);
    parameter.template store_pack<N>(column, rounded<N>(rounding, column, values));
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

struct MeanMomentumRun {
  float beta = 0;
  bool nesterov = true;
  float gradient_scale = 1.0F;
  simt::Global<const float> gradient;
  simt::Global<float> momentum;
  simt::Global<float> update;

  template <int N>
  __device__ void run(std::int64_t, std::int64_t column) const {
    auto g = load_floats<N>(gradient, column);
    auto m = load_floats<N>(momentum, column);
    for (int i = 0; i < N; ++i) {
      const float number = g[i] * gradient_scale;
      m[i] = beta * m[i] + (1.0F - beta) * number;
      g[i] = nesterov ? number + beta * (m[i] - number) : m[i];
    }
    store_floats<N>(momentum, column, m);
    store_floats<N>(update, column, g);
  }
};

/// The f32 runs of an update, and the parameter that is written from `master`.
struct OptimizerRuns {
  Tensor gradient;
  Tensor master;
  Tensor first_moment;   // momentum for SGD
  Tensor second_moment;  // AdamW only
  Tensor parameter;
};

/// The parameter, unless the master is the parameter.
inline Tensor separate_parameter(const OptimizerRuns& runs) {
  return runs.parameter.raw() == runs.master.raw() ? Tensor() : runs.parameter;
}

/// body(T, Published<T>, elements) with what writes the parameter; as many elements at a time as
/// one access of it moves.
template <typename L, typename Body>
void with_parameter(L& launcher, const OptimizerRuns& runs, const StochasticRounding& rounding,
                    const Body& body) {
  const auto parameter = separate_parameter(runs);
  const auto master = memory_of<float>(launcher, runs.master);
  const auto elements = [&](std::int64_t together) {
    return Elements{1, runs.gradient.element_count(),
                    all_packable(together, runs.gradient, runs.master, runs.first_moment,
                                 runs.second_moment, parameter)};
  };
  if (parameter && rounding.active()) {
    const Published<AtRandom> out{master, memory_of<Bf16>(launcher, parameter), rounding};
    body(AtRandom{}, out, elements(pack_size<Bf16>));
    return;
  }
  with_type(parameter ? parameter.dtype() : DType::f32, [&](auto element) {
    using T = decltype(element);
    const Published<T> out{master, memory_of<T>(launcher, parameter)};
    body(element, out, elements(pack_size<T>));
  });
}

template <typename T>
constexpr int published_together = pack_size<T>;
template <>
constexpr int published_together<AtRandom> = pack_size<Bf16>;

template <typename L>
void run(L& launcher, const AdamWUpdate& update) {
  const auto& rule = update.rule;
  const OptimizerRuns runs{update.gradient, update.master, update.first_moment,
                           update.second_moment, update.parameter};
  const auto correction = [&](float beta) {
    return static_cast<float>(1.0 -
                              std::pow(static_cast<double>(beta), static_cast<double>(rule.step)));
  };
  with_parameter(launcher, runs, rule.rounding,
                 [&]<typename T>(T, const auto& out, const Elements& elements) {
                   run_elements<published_together<T>>(
                       launcher, "adamw", elements,
                       AdamWRun<T>{rule, correction(rule.beta1), correction(rule.beta2),
                                   memory_of<const float>(launcher, runs.gradient),
                                   memory_of<float>(launcher, runs.first_moment),
                                   memory_of<float>(launcher, runs.second_moment), out});
                 });
}

template <typename L>
void run(L& launcher, const SgdUpdate& update) {
  const auto& rule = update.rule;
  const OptimizerRuns runs{update.gradient, update.master, update.momentum, {}, update.parameter};
  with_parameter(launcher, runs, rule.rounding,
                 [&]<typename T>(T, const auto& out, const Elements& elements) {
                   run_elements<published_together<T>>(
                       launcher, "sgd", elements,
                       SgdRun<T>{rule, memory_of<const float>(launcher, runs.gradient),
                                 memory_of<float>(launcher, runs.first_moment), out});
                 });
}

template <typename L>
void run(L& launcher, const MeanMomentum& operation) {
  const auto& [beta, step, scale, gradient, momentum, update] = operation;
  const auto count = gradient.element_count();
  constexpr int pack = pack_size<float>;
  run_elements<pack>(
      launcher, "mean_momentum", Elements{1, count, all_packable(pack, gradient, momentum, update)},
      MeanMomentumRun{beta, step == MeanMomentum::Step::nesterov, scale,
                      memory_of<const float>(launcher, gradient),
                      memory_of<float>(launcher, momentum), memory_of<float>(launcher, update)});
}

template <typename L>
void run(L& launcher, const RoundStochastically& operation) {
  const auto& [master, rounding, parameter] = operation;
  constexpr int pack = pack_size<Bf16>;
  run_elements<pack>(launcher, "round_stochastically",
                     Elements{1, master.element_count(), all_packable(pack, master, parameter)},
                     RoundRun{memory_of<const float>(launcher, master),
                              memory_of<Bf16>(launcher, parameter), rounding});
}

}  // namespace trireme::device::cuda
