// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/simd/functions.hpp"
#include "device/cpu/simd/lanes.hpp"

namespace trireme::device::cpu {

struct SoftmaxStatistics {
  float largest = 0;
  /// Sum of exp(logit - largest).
  float sum = 0;
};

template <typename T>
struct CrossEntropyFunctions {
  SoftmaxStatistics (*stats)(const T* logits, std::int64_t count);
  /// logits become exp(logit - lse) * scale.
  void (*probabilities)(T* logits, std::int64_t count, float lse, float scale);
};

struct CrossEntropyTable : PerType<CrossEntropyFunctions> {};

/// Elements whose maximum is found before their exponentials are summed: they come from memory
/// once and from the nearest cache the second time.
constexpr std::int64_t softmax_block = 2048;

template <typename Vec, typename T>
SoftmaxStatistics softmax_stats_row(const T* logits, std::int64_t count) {
  // The start is not minus infinity: logits of minus infinity then count as zero, not as a NaN.
  SoftmaxStatistics running{-3.4028235e38F, 0.0F};
  for (std::int64_t begin = 0; begin < count; begin += softmax_block) {
    const std::int64_t length = count - begin < softmax_block ? count - begin : softmax_block;
    const T* block = logits + begin;
    Vec maxima = Vec::of(running.largest);
    for_lanes<Vec>(length, [&](std::int64_t i, auto extent) {
      // The order of the arguments ignores a NaN here; it shows in the sum.
      maxima = max(within(load<Vec>(block + i, extent), maxima, extent), maxima);
    });
    const float largest_so_far = largest(maxima);
    const Vec shift = Vec::of(largest_so_far);
    const Vec rescale = exponential(Vec::of(running.largest) - shift);
    Vec sums = Vec::zero();
    for_lanes<Vec>(length, [&](std::int64_t i, auto extent) {
      const Vec terms = exponential(load<Vec>(block + i, extent) - shift);
      sums = sums + within(terms, Vec::zero(), extent);
    });
    running = {largest_so_far, running.sum * first_lane(rescale) + sum(sums)};
  }
  return running;
}

template <typename Vec, typename T>
void probabilities_row(T* logits, std::int64_t count, float lse, float scale) {
  const Vec shift = Vec::of(lse);
  const Vec factor = Vec::of(scale);
  for_lanes<Vec>(count, [&](std::int64_t i, auto extent) {
    store(logits + i, exponential(load<Vec>(logits + i, extent) - shift) * factor, extent);
  });
}

template <typename Vec, typename T>
constexpr CrossEntropyFunctions<T> cross_entropy_functions() {
  return {softmax_stats_row<Vec, T>, probabilities_row<Vec, T>};
}

template <typename Instructions>
constexpr CrossEntropyTable cross_entropy_table() {
  using Vec = typename Instructions::Vec;
  return {{cross_entropy_functions<Vec, float>(), cross_entropy_functions<Vec, Bf16>()}};
}

}  // namespace trireme::device::cpu
