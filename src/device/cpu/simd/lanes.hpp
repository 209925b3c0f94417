// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/dtype.hpp"

#include <cstdint>

/// Loops over rows of numbers, a vector at a time. Everything is a template over Vec.
namespace trireme::device::cpu {

/// A full vector of elements.
struct Whole {};
/// The last, partial vector of a row.
struct Part {
  std::int64_t count = 0;
};

template <typename Vec, typename T>
inline Vec load(const T* from, Whole) {
  return Vec::load(from);
}
template <typename Vec, typename T>
inline Vec load(const T* from, Part part) {
  return Vec::load(from, part.count);
}

template <typename Vec, typename T>
inline void store(T* to, Vec value, Whole) {
  value.store(to);
}
template <typename Vec, typename T>
inline void store(T* to, Vec value, Part part) {
  value.store(to, part.count);
}

/// `other` in the lanes beyond the row's end.
template <typename Vec>
inline Vec within(Vec value, Vec, Whole) {
  return value;
}
template <typename Vec>
inline Vec within(Vec value, Vec other, Part part) {
  return value.first(part.count, other);
}

/// body(index, extent) for each vector of a row: Whole, and Part for what remains.
template <typename Vec, typename Body>
inline void for_lanes(std::int64_t count, const Body& body) {
  std::int64_t index = 0;
  for (; index + Vec::width <= count; index += Vec::width) body(index, Whole{});
  if (index < count) body(index, Part{count - index});
}

/// The functions of one theme for both element types.
template <template <typename> class Functions>
struct PerType {
  Functions<float> f32;
  Functions<Bf16> bf16;

  const Functions<float>& of(float) const { return f32; }
  const Functions<Bf16>& of(Bf16) const { return bf16; }
};

}  // namespace trireme::device::cpu
