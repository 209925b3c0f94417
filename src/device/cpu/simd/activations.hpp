// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/simd/functions.hpp"
#include "device/cpu/simd/lanes.hpp"

namespace trireme::device::cpu {

/// Activations on runs of `count` neighbouring elements. Outputs may be inputs.
template <typename T>
struct ActivationFunctions {
  void (*swiglu_forward)(const T* gate, const T* up, T* y, std::int64_t count);
  void (*swiglu_backward)(const T* dy, const T* gate, const T* up, T* d_gate, T* d_up,
                          std::int64_t count);
  void (*gelu_forward)(const T* x, T* y, std::int64_t count);
  void (*gelu_backward)(const T* dy, const T* x, T* dx, std::int64_t count);
};

struct ActivationTable : PerType<ActivationFunctions> {};

template <typename Vec, typename T>
void swiglu_forward_run(const T* gate, const T* up, T* y, std::int64_t count) {
  for_lanes<Vec>(count, [&](std::int64_t i, auto extent) {
    const Vec g = load<Vec>(gate + i, extent);
    store(y + i, g * sigmoid(g) * load<Vec>(up + i, extent), extent);
  });
}

template <typename Vec, typename T>
void swiglu_backward_run(const T* dy, const T* gate, const T* up, T* d_gate, T* d_up,
                         std::int64_t count) {
  for_lanes<Vec>(count, [&](std::int64_t i, auto extent) {
    const Vec d = load<Vec>(dy + i, extent);
    const Vec g = load<Vec>(gate + i, extent);
    const Vec u = load<Vec>(up + i, extent);
    const Vec s = sigmoid(g);
    const Vec silu = g * s;
    // d silu / d gate = s + g s (1 - s)
    store(d_gate + i, d * u * fma(silu, Vec::of(1.0F) - s, s), extent);
    store(d_up + i, d * silu, extent);
  });
}

/// The tanh form of GELU is x * sigmoid(2 t) with t = sqrt(2 / pi) (x + 0.044715 x^3), because
/// (1 + tanh t) / 2 = sigmoid(2 t): one exponential, and no cancellation for negative x. As a
/// power of two the exponent is -x (gelu_slope + gelu_cubic x^2) log2(e).
constexpr float gelu_slope = 1.5957691216F;  // 2 sqrt(2 / pi)
constexpr float gelu_cubic = 0.044715F * gelu_slope;
constexpr float log2_e = 1.4426950409F;

template <typename Vec>
inline Vec gelu_sigmoid(Vec x, Vec squares) {
  return inverse_of_one_plus_power(
      x * fma(squares, Vec::of(-gelu_cubic * log2_e), Vec::of(-gelu_slope * log2_e)));
}

template <typename Vec, typename T>
void gelu_forward_run(const T* x, T* y, std::int64_t count) {
  for_lanes<Vec>(count, [&](std::int64_t i, auto extent) {
    const Vec value = load<Vec>(x + i, extent);
    store(y + i, value * gelu_sigmoid(value, value * value), extent);
  });
}

template <typename Vec, typename T>
void gelu_backward_run(const T* dy, const T* x, T* dx, std::int64_t count) {
  for_lanes<Vec>(count, [&](std::int64_t i, auto extent) {
    const Vec value = load<Vec>(x + i, extent);
    // Bounded, so that the vanishing s (1 - s) never meets an infinity.
    const Vec squares = min(Vec::of(1e8F), value * value);
    const Vec s = gelu_sigmoid(value, squares);
    // d gelu / dx = s + x s (1 - s) times the derivative of the exponent.
    const Vec inner = fma(squares, Vec::of(3.0F * gelu_cubic), Vec::of(gelu_slope));
    const Vec derivative = fma(value * s * (Vec::of(1.0F) - s), inner, s);
    store(dx + i, load<Vec>(dy + i, extent) * derivative, extent);
  });
}

template <typename Vec, typename T>
constexpr ActivationFunctions<T> activation_functions() {
  return {swiglu_forward_run<Vec, T>, swiglu_backward_run<Vec, T>, gelu_forward_run<Vec, T>,
          gelu_backward_run<Vec, T>};
}

template <typename Instructions>
constexpr ActivationTable activation_table() {
  using Vec = typename Instructions::Vec;
  return {{activation_functions<Vec, float>(), activation_functions<Vec, Bf16>()}};
}

}  // namespace trireme::device::cpu
