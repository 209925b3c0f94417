// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/kernels/quantise.hpp"

#include "device/cpu/kernels/run.hpp"
#include "device/cpu/runtime/runs.hpp"

#include <atomic>

namespace trireme::device::cpu {
namespace {

std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU;
}

}  // namespace

template <>
void run(Context& context, const LargestMagnitude& operation) {
  const auto& [x, magnitude] = operation;
  // Integers of magnitudes have the order of the numbers, NaN last; the largest does not depend on
  // the order of the threads.
  std::atomic<std::uint32_t> largest{0};
  with_type(x.dtype(), [&](auto element) {
    const auto* numbers = data_of<decltype(element)>(x);
    for_runs<1>(context, {x}, [&](const auto& offset, std::int64_t count) {
      std::uint32_t own = 0;
      for (auto i = offset[0]; i < offset[0] + count; ++i) {
        own = std::max(own, magnitude_bits(to_float(numbers[i])));
      }
      auto known = largest.load();
      while (own > known && !largest.compare_exchange_weak(known, own)) continue;
    });
  });
  magnitude.f32()[0] = std::bit_cast<float>(largest.load());
}

template <>
void run(Context& context, const Quantise& operation) {
  const auto& [x, magnitude, result] = operation;
  const float scale = e4m3_scale(magnitude.f32()[0]);
  auto* codes = result.codes.e4m3();
  with_type(x.dtype(), [&](auto element) {
    const auto* numbers = data_of<decltype(element)>(x);
    for_runs<2>(context, {x, result.codes}, [&](const auto& offset, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        codes[offset[1] + i] = to_e4m3(to_float(numbers[offset[0] + i]) * scale);
      }
    });
  });
  result.unscale.f32()[0] = e4m3_unscale(scale);
}

Tensor QuantisedValues::values(const Context& context, const Quantised& quantised,
                               std::size_t operand) {
  const auto& codes = quantised.codes;
  auto& memory = memory_.at(operand);
  const auto wanted = static_cast<std::size_t>(codes.element_count());
  if (memory.size() < wanted) memory.resize(wanted);
  const float unscale = quantised.unscale.f32()[0];
  const auto* from = codes.e4m3();
  for_runs<1>(context, {codes}, [&](const auto& offset, std::int64_t count) {
    for (auto i = offset[0]; i < offset[0] + count; ++i) {
      memory[static_cast<std::size_t>(i)] = to_bf16(to_float(from[i]) * unscale);
    }
  });
  return {memory.data(), DType::bf16, {codes.dim(0), codes.dim(1)}};
}

}  // namespace trireme::device::cpu
