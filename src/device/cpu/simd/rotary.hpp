// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/simd/lanes.hpp"

namespace trireme::device::cpu {

/// All heads at one position; they share the angles.
template <typename T>
struct RotaryHeads {
  T* first = nullptr;
  std::int64_t count = 0;
  std::int64_t stride = 0;
  const float* cosine = nullptr;  // [half]
  const float* sine = nullptr;    // [half]
  std::int64_t half = 0;
};

template <typename T>
struct RotaryFunctions {
  void (*rotate)(const RotaryHeads<T>& heads);
  void (*rotate_back)(const RotaryHeads<T>& heads);
};

struct RotaryTable : PerType<RotaryFunctions> {};

template <typename Vec, typename T, bool back>
void rotate_heads(const RotaryHeads<T>& heads) {
  for (std::int64_t head = 0; head < heads.count; ++head) {
    T* low = heads.first + head * heads.stride;
    T* high = low + heads.half;
    for_lanes<Vec>(heads.half, [&](std::int64_t i, auto extent) {
      const Vec c = load<Vec>(heads.cosine + i, extent);
      const Vec sine = load<Vec>(heads.sine + i, extent);
      const Vec s = back ? Vec::zero() - sine : sine;
      const Vec a = load<Vec>(low + i, extent);
      const Vec b = load<Vec>(high + i, extent);
      store(low + i, fnma(b, s, a * c), extent);
      store(high + i, fma(a, s, b * c), extent);
    });
  }
}

template <typename Vec, typename T>
constexpr RotaryFunctions<T> rotary_functions() {
  return {rotate_heads<Vec, T, false>, rotate_heads<Vec, T, true>};
}

template <typename Instructions>
constexpr RotaryTable rotary_table() {
  using Vec = typename Instructions::Vec;
  return {{rotary_functions<Vec, float>(), rotary_functions<Vec, Bf16>()}};
}

}  // namespace trireme::device::cpu
