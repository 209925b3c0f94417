// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/tensor.hpp"

#include <bit>
#include <cstdint>

namespace trireme::device {

// Shapes are equal.

/// x = value.
struct Fill {
  static constexpr const char* name = "fill";
  Tensor x;
  float value = 0.0F;

  void check() const {}
  void operands(auto visit) { visit("x", x, Role::output); }
};

/// to = from, between types and strides.
struct Copy {
  static constexpr const char* name = "copy";
  Tensor from;
  Tensor to;

  void check() const;
  void operands(auto visit) {
    visit("from", from, Role::input);
    visit("to", to, Role::output);
  }
};

/// z = x + y; any of the three may be the same.
struct Add {
  static constexpr const char* name = "add";
  Tensor x;
  Tensor y;
  Tensor z;

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("y", y, Role::input);
    visit("z", z, Role::output);
  }
};

/// sum += x.
struct Accumulate {
  static constexpr const char* name = "accumulate";
  Tensor x;
  Tensor sum;  // f32

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("sum", sum, Role::in_out);
  }
};

/// Term of element `index` (row-major) in a HashBits: the last step of SplitMix64 (Steele, Lea &
/// Flood 2014), which maps different bits of one element to different terms.
constexpr std::uint64_t hash_term(std::uint32_t bits, std::uint64_t index) {
  auto word = (index + 1) * 0x9E3779B97F4A7C15ULL ^ bits;
  word = (word ^ (word >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  word = (word ^ (word >> 27U)) * 0x94D049BB133111EBULL;
  return word ^ (word >> 31U);
}
constexpr std::uint64_t hash_term(float number, std::uint64_t index) {
  return hash_term(std::bit_cast<std::uint32_t>(number), index);
}
constexpr std::uint64_t hash_term(Bf16 number, std::uint64_t index) {
  return hash_term(std::uint32_t{number.bits}, index);
}

/// hash = sum of hash_term(bits of x[i], i) over all elements, modulo 2^64: the same in any order,
/// on any device. Tensors that differ in one element have different hashes.
struct HashBits {
  static constexpr const char* name = "hash_bits";
  Tensor x;
  Tensor hash;  // i32 [2]: low word, high word

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("hash", hash, Role::output);
  }
};

using ArithmeticOperations = OperationList<Fill, Copy, Add, Accumulate, HashBits>;

}  // namespace trireme::device
