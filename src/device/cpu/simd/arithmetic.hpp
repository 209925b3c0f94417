// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/simd/lanes.hpp"

namespace trireme::device::cpu {

/// Arithmetic on runs of `count` neighbouring elements.
template <typename T>
struct ArithmeticFunctions {
  void (*fill)(T* x, std::int64_t count, float value);
  void (*to_f32)(const T* x, float* y, std::int64_t count);
  void (*to_bf16)(const T* x, Bf16* y, std::int64_t count);
  /// z = x + y.
  void (*add)(const T* x, const T* y, T* z, std::int64_t count);
  /// sum += x.
  void (*accumulate)(const T* x, float* sum, std::int64_t count);
  /// y = scale * sums.
  void (*scale)(const float* sums, float scale, T* y, std::int64_t count);
  /// y = scale * sums + added_scale * added; y may be added.
  void (*scale_and_add)(const float* sums, float scale, const T* added, float added_scale, T* y,
                        std::int64_t count);
};

struct ArithmeticTable : PerType<ArithmeticFunctions> {
  double (*sum_of_squares)(const float* x, std::int64_t count);
};

template <typename Vec, typename T>
void fill_run(T* x, std::int64_t count, float value) {
  const Vec filled = Vec::of(value);
  for_lanes<Vec>(count, [&](std::int64_t i, auto extent) { store(x + i, filled, extent); });
}

template <typename Vec, typename From, typename To>
void convert_run(const From* x, To* y, std::int64_t count) {
  for_lanes<Vec>(
      count, [&](std::int64_t i, auto extent) { store(y + i, load<Vec>(x + i, extent), extent); });
}

template <typename Vec, typename T>
void add_run(const T* x, const T* y, T* z, std::int64_t count) {
  for_lanes<Vec>(count, [&](std::int64_t i, auto extent) {
    store(z + i, load<Vec>(x + i, extent) + load<Vec>(y + i, extent), extent);
  });
}

template <typename Vec, typename T>
void accumulate_run(const T* x, float* sum, std::int64_t count) {
  for_lanes<Vec>(count, [&](std::int64_t i, auto extent) {
    store(sum + i, load<Vec>(sum + i, extent) + load<Vec>(x + i, extent), extent);
  });
}

template <typename Vec, typename T>
void scale_run(const float* sums, float scale, T* y, std::int64_t count) {
  const Vec factor = Vec::of(scale);
  for_lanes<Vec>(count, [&](std::int64_t i, auto extent) {
    store(y + i, factor * load<Vec>(sums + i, extent), extent);
  });
}

template <typename Vec, typename T>
void scale_and_add_run(const float* sums, float scale, const T* added, float added_scale, T* y,
                       std::int64_t count) {
  const Vec factor = Vec::of(scale);
  const Vec other = Vec::of(added_scale);
  for_lanes<Vec>(count, [&](std::int64_t i, auto extent) {
    store(y + i, factor * load<Vec>(sums + i, extent) + other * load<Vec>(added + i, extent),
          extent);
  });
}

template <typename Instructions>
double square_sum_of_run(const float* x, std::int64_t count) {
  using Vec = typename Instructions::Vec;
  typename Instructions::SquareSums sums[2];
  std::int64_t i = 0;
  for (; i + 2 * Vec::width <= count; i += 2 * Vec::width) {
    sums[0].add(Vec::load(x + i).v);
    sums[1].add(Vec::load(x + i + Vec::width).v);
  }
  for_lanes<Vec>(count - i,
                 [&](std::int64_t j, auto extent) { sums[0].add(load<Vec>(x + i + j, extent).v); });
  return sums[0].total() + sums[1].total();
}

template <typename Vec, typename T>
constexpr ArithmeticFunctions<T> arithmetic_functions() {
  return {fill_run<Vec, T>,         convert_run<Vec, T, float>, convert_run<Vec, T, Bf16>,
          add_run<Vec, T>,          accumulate_run<Vec, T>,     scale_run<Vec, T>,
          scale_and_add_run<Vec, T>};
}

template <typename Instructions>
constexpr ArithmeticTable arithmetic_table() {
  using Vec = typename Instructions::Vec;
  return {{arithmetic_functions<Vec, float>(), arithmetic_functions<Vec, Bf16>()},
          square_sum_of_run<Instructions>};
}

}  // namespace trireme::device::cpu
