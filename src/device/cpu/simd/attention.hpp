// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/simd/functions.hpp"
#include "device/cpu/simd/lanes.hpp"

namespace trireme::device::cpu {

/// Statistics of a query over the keys so far: the largest score and the sum of
/// exp(score - largest) (Milakov & Gimelshein 2018, "Online normalizer calculation for softmax").
struct SoftmaxState {
  float largest = -3.4028235e38F;
  float sum = 0;
};

/// One query's scores q . k with a block of keys.
template <typename T>
struct SoftmaxRow {
  const float* scores = nullptr;
  /// Keys that the query sees, and keys of the block: weights of the others become zero.
  std::int64_t visible = 0;
  std::int64_t count = 0;
  float scale = 1;
  /// Dropout factors of the visible keys, or null.
  const float* factors = nullptr;
  T* weights = nullptr;
};

/// One query's gradients with a block of keys.
template <typename T>
struct SoftmaxGradientRow {
  const float* scores = nullptr;     // q . k
  const float* d_weights = nullptr;  // d_out . v
  std::int64_t visible = 0;
  std::int64_t count = 0;
  float scale = 1;
  float lse = 0;
  /// d_out . out
  float delta = 0;
  const float* factors = nullptr;
  T* weights = nullptr;   // softmax, with dropout
  T* d_scores = nullptr;  // times scale
};

/// A row of keys or values of one head: `count` rows of `width`, `stride` elements apart.
template <typename T>
struct HeadRows {
  const T* data = nullptr;
  std::int64_t count = 0;
  std::int64_t width = 0;
  std::int64_t stride = 0;
};

template <typename T>
struct AttentionFunctions {
  /// weights = exp(scores * scale - largest), unnormalised. Returns what earlier sums and outputs
  /// are multiplied by, now that the largest score is larger.
  float (*softmax)(const SoftmaxRow<T>& row, SoftmaxState& state);
  void (*softmax_gradient)(const SoftmaxGradientRow<T>& row);
  float (*dot)(const T* a, const T* b, std::int64_t count);
  /// scores[j] = q . rows[j].
  void (*scores)(const T* q, const HeadRows<T>& keys, float* scores);
  /// out = factor * sum over j of weights[j] * rows[j].
  void (*weighted_sum)(const float* weights, const HeadRows<T>& values, float factor, T* out);
  /// y = x * factor.
  void (*scaled)(const float* x, std::int64_t count, float factor, T* y);
};

struct AttentionTable : PerType<AttentionFunctions> {};

template <typename Vec, typename T>
inline void clear_from(T* row, std::int64_t begin, std::int64_t end) {
  for_lanes<Vec>(end - begin,
                 [&](std::int64_t i, auto extent) { store(row + begin + i, Vec::zero(), extent); });
}

template <typename Vec, typename T>
float softmax_block_row(const SoftmaxRow<T>& row, SoftmaxState& state) {
  clear_from<Vec>(row.weights, row.visible, row.count);
  const Vec scale = Vec::of(row.scale);
  Vec maxima = Vec::of(state.largest);
  for_lanes<Vec>(row.visible, [&](std::int64_t i, auto extent) {
    // The order of the arguments ignores a NaN here; it shows in the sum.
    maxima = max(within(load<Vec>(row.scores + i, extent) * scale, maxima, extent), maxima);
  });
  const float largest_so_far = largest(maxima);
  const Vec shift = Vec::of(largest_so_far);
  const float rescale = first_lane(exponential(Vec::of(state.largest) - shift));
  Vec sums = Vec::zero();
  for_lanes<Vec>(row.visible, [&](std::int64_t i, auto extent) {
    Vec weight = exponential(fma(load<Vec>(row.scores + i, extent), scale, Vec::zero() - shift));
    sums = sums + within(weight, Vec::zero(), extent);
    if (row.factors != nullptr) weight = weight * load<Vec>(row.factors + i, extent);
    store(row.weights + i, weight, extent);
  });
  state = {largest_so_far, state.sum * rescale + sum(sums)};
  return rescale;
}

template <typename Vec, typename T>
void softmax_gradient_row(const SoftmaxGradientRow<T>& row) {
  clear_from<Vec>(row.weights, row.visible, row.count);
  clear_from<Vec>(row.d_scores, row.visible, row.count);
  const Vec scale = Vec::of(row.scale);
  const Vec shift = Vec::of(-row.lse);
  const Vec delta = Vec::of(row.delta);
  for_lanes<Vec>(row.visible, [&](std::int64_t i, auto extent) {
    const Vec p = exponential(fma(load<Vec>(row.scores + i, extent), scale, shift));
    Vec weight = p;
    Vec d_weight = load<Vec>(row.d_weights + i, extent);
    if (row.factors != nullptr) {
      const Vec factor = load<Vec>(row.factors + i, extent);
      weight = weight * factor;
      d_weight = d_weight * factor;
    }
    // d_scores may be d_weights, and weights may be scores.
    store(row.weights + i, weight, extent);
    store(row.d_scores + i, p * scale * (d_weight - delta), extent);
  });
}

template <typename Vec, typename T>
float dot_run(const T* a, const T* b, std::int64_t count) {
  Vec sums = Vec::zero();
  for_lanes<Vec>(count, [&](std::int64_t i, auto extent) {
    sums = fma(load<Vec>(a + i, extent), load<Vec>(b + i, extent), sums);
  });
  return sum(sums);
}

template <typename Vec, typename T>
void scores_row(const T* q, const HeadRows<T>& keys, float* scores) {
  for (std::int64_t key = 0; key < keys.count; ++key) {
    scores[key] = dot_run<Vec>(q, keys.data + key * keys.stride, keys.width);
  }
}

/// A few vectors of the output at a time stay in registers over all rows.
template <typename Vec, typename T>
void weighted_sum_row(const float* weights, const HeadRows<T>& values, float factor, T* out) {
  constexpr int vectors = 8;
  std::int64_t begin = 0;
  for (; begin + vectors * Vec::width <= values.width; begin += vectors * Vec::width) {
    Vec sums[vectors];
    for (auto& one : sums) one = Vec::zero();
    for (std::int64_t row = 0; row < values.count; ++row) {
      const Vec weight = Vec::of(weights[row]);
      const T* from = values.data + row * values.stride + begin;
      for (int i = 0; i < vectors; ++i) {
        sums[i] = fma(weight, Vec::load(from + i * Vec::width), sums[i]);
      }
    }
    for (int i = 0; i < vectors; ++i) {
      (sums[i] * Vec::of(factor)).store(out + begin + i * Vec::width);
    }
  }
  for_lanes<Vec>(values.width - begin, [&](std::int64_t i, auto extent) {
    Vec sums = Vec::zero();
    for (std::int64_t row = 0; row < values.count; ++row) {
      const T* from = values.data + row * values.stride + begin;
      sums = fma(Vec::of(weights[row]), load<Vec>(from + i, extent), sums);
    }
    store(out + begin + i, sums * Vec::of(factor), extent);
  });
}

template <typename Vec, typename T>
void scaled_run(const float* x, std::int64_t count, float factor, T* y) {
  const Vec factors = Vec::of(factor);
  for_lanes<Vec>(count, [&](std::int64_t i, auto extent) {
    store(y + i, load<Vec>(x + i, extent) * factors, extent);
  });
}

template <typename Vec, typename T>
constexpr AttentionFunctions<T> attention_functions() {
  return {softmax_block_row<Vec, T>, softmax_gradient_row<Vec, T>, dot_run<Vec, T>,
          scores_row<Vec, T>,        weighted_sum_row<Vec, T>,     scaled_run<Vec, T>};
}

template <typename Instructions>
constexpr AttentionTable attention_table() {
  using Vec = typename Instructions::Vec;
  return {{attention_functions<Vec, float>(), attention_functions<Vec, Bf16>()}};
}

}  // namespace trireme::device::cpu
