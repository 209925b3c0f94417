// SPDX-License-Identifier: Apache-2.0
#include "comm/core/ordered_sum.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::comm {
namespace {

using device::Bf16;
using device::DType;

struct Sum {
  static float combine(float a, float b) { return a + b; }
  static std::int32_t combine(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
};

struct Max {
  static float combine(float a, float b) { return b > a || std::isnan(b) ? b : a; }
  static std::int32_t combine(std::int32_t a, std::int32_t b) { return std::max(a, b); }
};

float load(float value) {
  return value;
}
float load(Bf16 value) {
  return device::to_float(value);
}
std::int32_t load(std::int32_t value) {
  return value;
}
void store(float& place, float value) {
  place = value;
}
void store(Bf16& place, float value) {
  place = device::to_bf16(value);
}
void store(std::int32_t& place, std::int32_t value) {
  place = value;
}

template <typename Op, typename T>
void reduce_elements(std::span<const void* const> inputs, void* out, std::int64_t begin,
                     std::int64_t end) {
  for (auto i = begin; i < end; ++i) {
    auto value = load(static_cast<const T*>(inputs[0])[i]);
    for (std::size_t input = 1; input < inputs.size(); ++input) {
      value = Op::combine(value, load(static_cast<const T*>(inputs[input])[i]));
    }
    store(static_cast<T*>(out)[i], value);
  }
}

template <typename Op>
void reduce_rest(DType dtype, std::span<const void* const> inputs, void* out, std::int64_t begin,
                 std::int64_t end) {
  switch (dtype) {
    case DType::f32:
      return reduce_elements<Op, float>(inputs, out, begin, end);
    case DType::bf16:
      return reduce_elements<Op, Bf16>(inputs, out, begin, end);
    case DType::i32:
      return reduce_elements<Op, std::int32_t>(inputs, out, begin, end);
    case DType::e4m3:
      break;
  }
}

std::int64_t sum_vectors(Instructions instructions, DType dtype,
                         std::span<const void* const> inputs, void* out, std::int64_t count) {
  const auto input_count = static_cast<int>(inputs.size());
  if (dtype == DType::i32) return 0;
  auto* const floats = static_cast<float*>(out);
  auto* const halves = static_cast<std::uint16_t*>(out);
  switch (instructions) {
    case Instructions::portable:
      return 0;
    case Instructions::avx2:
      return dtype == DType::f32 ? avx2::sum_f32(inputs.data(), input_count, floats, count)
                                 : avx2::sum_bf16(inputs.data(), input_count, halves, count);
    case Instructions::avx512:
      return dtype == DType::f32 ? avx512::sum_f32(inputs.data(), input_count, floats, count)
                                 : avx512::sum_bf16(inputs.data(), input_count, halves, count);
  }
  return 0;
}

}  // namespace

const char* name(Instructions instructions) {
  switch (instructions) {
    case Instructions::portable:
      return "portable";
    case Instructions::avx2:
      return "AVX2";
    case Instructions::avx512:
      return "AVX-512";
  }
  return "?";
}

void reduce_in_order(Instructions instructions, ReduceOp op, DType dtype,
                     std::span<const void* const> inputs, void* out, std::int64_t count) {
  switch (op) {
    case ReduceOp::sum: {
      const auto done = sum_vectors(instructions, dtype, inputs, out, count);
      return reduce_rest<Sum>(dtype, inputs, out, done, count);
    }
    case ReduceOp::max:
      return reduce_rest<Max>(dtype, inputs, out, 0, count);
  }
}

void reduce_in_order(ReduceOp op, DType dtype, std::span<const void* const> inputs, void* out,
                     std::int64_t count) {
  reduce_in_order(best_instructions(), op, dtype, inputs, out, count);
}

}  // namespace trireme::comm
