// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/simd/lanes.hpp"

namespace trireme::device::cpu {

/// One row of a norm. Optional places are null.
template <typename T>
struct NormForwardRow {
  const T* x = nullptr;
  const T* residual = nullptr;
  T* sum = nullptr;
  const T* weight = nullptr;
  const T* bias = nullptr;
  T* y = nullptr;
  std::int64_t width = 0;
  float eps = 0;
};

struct NormStatistics {
  float mean = 0;
  float rstd = 0;
};

template <typename T>
struct NormBackwardRow {
  const T* dy = nullptr;
  const T* x = nullptr;
  const T* weight = nullptr;
  const T* d_residual = nullptr;
  T* dx = nullptr;
  float* d_weight = nullptr;
  float* d_bias = nullptr;
  std::int64_t width = 0;
  NormStatistics statistics;
  float eps = 0;
};

template <typename T>
struct NormFunctions {
  NormStatistics (*rms_forward)(const NormForwardRow<T>& row);
  NormStatistics (*layer_forward)(const NormForwardRow<T>& row);
  void (*rms_backward)(const NormBackwardRow<T>& row);
  void (*layer_backward)(const NormBackwardRow<T>& row);
};

struct NormTable : PerType<NormFunctions> {};

/// One square root and one division for a row, rounded correctly.
template <typename Vec>
inline float reciprocal_root(float value) {
  return first_lane(Vec::of(1.0F) / sqrt(Vec::of(value)));
}

/// Writes x + residual and returns where the numbers to normalise lie.
template <typename Vec, typename T>
inline const T* add_residual(const NormForwardRow<T>& row) {
  if (row.residual == nullptr) return row.x;
  for_lanes<Vec>(row.width, [&](std::int64_t i, auto extent) {
    store(row.sum + i, load<Vec>(row.x + i, extent) + load<Vec>(row.residual + i, extent), extent);
  });
  return row.sum;
}

/// y = (x - mean) * rstd * weight + bias.
template <typename Vec, typename T>
inline void write_normalised(const NormForwardRow<T>& row, const T* x,
                             const NormStatistics& statistics) {
  const Vec mean = Vec::of(statistics.mean);
  const Vec rstd = Vec::of(statistics.rstd);
  if (row.bias == nullptr) {
    for_lanes<Vec>(row.width, [&](std::int64_t i, auto extent) {
      const Vec normalised = (load<Vec>(x + i, extent) - mean) * rstd;
      store(row.y + i, normalised * load<Vec>(row.weight + i, extent), extent);
    });
    return;
  }
  for_lanes<Vec>(row.width, [&](std::int64_t i, auto extent) {
    const Vec normalised = (load<Vec>(x + i, extent) - mean) * rstd;
    store(row.y + i,
          fma(normalised, load<Vec>(row.weight + i, extent), load<Vec>(row.bias + i, extent)),
          extent);
  });
}

/// Mean of (x - center)^2.
template <typename Vec, typename T>
inline float mean_square(const T* x, std::int64_t width, float center) {
  const Vec centers = Vec::of(center);
  Vec squares = Vec::zero();
  for_lanes<Vec>(width, [&](std::int64_t i, auto extent) {
    const Vec centered = within(load<Vec>(x + i, extent) - centers, Vec::zero(), extent);
    squares = fma(centered, centered, squares);
  });
  return sum(squares) / static_cast<float>(width);
}

template <typename Vec, typename T>
NormStatistics rms_forward_row(const NormForwardRow<T>& row) {
  const T* x = add_residual<Vec>(row);
  const NormStatistics statistics{
      0.0F, reciprocal_root<Vec>(mean_square<Vec>(x, row.width, 0.0F) + row.eps)};
  write_normalised<Vec>(row, x, statistics);
  return statistics;
}

/// The variance is taken around the mean, in a second pass: the difference of two large sums
/// would lose it when the mean is large.
template <typename Vec, typename T>
NormStatistics layer_forward_row(const NormForwardRow<T>& row) {
  const T* x = add_residual<Vec>(row);
  Vec total = Vec::zero();
  for_lanes<Vec>(row.width,
                 [&](std::int64_t i, auto extent) { total = total + load<Vec>(x + i, extent); });
  const float mean = sum(total) / static_cast<float>(row.width);
  const NormStatistics statistics{
      mean, reciprocal_root<Vec>(mean_square<Vec>(x, row.width, mean) + row.eps)};
  write_normalised<Vec>(row, x, statistics);
  return statistics;
}

/// Backward of a row: with g = dy * weight and h the normalised row,
/// dx = rstd * (g - mean(g) - h * mean(g * h)); an RMS norm lacks the first mean.
template <typename Vec, typename T, bool centered>
void norm_backward_row(const NormBackwardRow<T>& row) {
  const Vec mean = Vec::of(row.statistics.mean);
  const Vec rstd = Vec::of(row.statistics.rstd);
  Vec sum_g = Vec::zero();
  Vec sum_gh = Vec::zero();
  for_lanes<Vec>(row.width, [&](std::int64_t i, auto extent) {
    const Vec dy = load<Vec>(row.dy + i, extent);
    const Vec h = (load<Vec>(row.x + i, extent) - mean) * rstd;
    const Vec g = dy * load<Vec>(row.weight + i, extent);
    store(row.d_weight + i, fma(dy, h, load<Vec>(row.d_weight + i, extent)), extent);
    sum_gh = fma(g, h, sum_gh);
    if constexpr (centered) {
      if (row.d_bias != nullptr) {
        store(row.d_bias + i, load<Vec>(row.d_bias + i, extent) + dy, extent);
      }
      sum_g = sum_g + g;
    }
  });
  const float width = static_cast<float>(row.width);
  const Vec mean_g = Vec::of(sum(sum_g) / width);
  const Vec mean_gh = Vec::of(sum(sum_gh) / width);
  for_lanes<Vec>(row.width, [&](std::int64_t i, auto extent) {
    const Vec h = (load<Vec>(row.x + i, extent) - mean) * rstd;
    const Vec g = load<Vec>(row.dy + i, extent) * load<Vec>(row.weight + i, extent);
    Vec dx = rstd * fnma(h, mean_gh, g - mean_g);
    if (row.d_residual != nullptr) dx = dx + load<Vec>(row.d_residual + i, extent);
    store(row.dx + i, dx, extent);
  });
}

template <typename Vec, typename T>
constexpr NormFunctions<T> norm_functions() {
  return {rms_forward_row<Vec, T>, layer_forward_row<Vec, T>, norm_backward_row<Vec, T, false>,
          norm_backward_row<Vec, T, true>};
}

template <typename Instructions>
constexpr NormTable norm_table() {
  using Vec = typename Instructions::Vec;
  return {{norm_functions<Vec, float>(), norm_functions<Vec, Bf16>()}};
}

}  // namespace trireme::device::cpu
