// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/float8.hpp"

#include "device/elements.hpp"
#include "device/reference/reference.hpp"
#include "device/rows.hpp"

#include <vector>

namespace trireme::device::reference {
namespace {

/// Values of the codes. bf16 holds every product of a code and a power of two.
std::vector<Bf16> values_of(const Quantised& quantised) {
  const float unscale = quantised.unscale.f32()[0];
  const auto* codes = quantised.codes.e4m3();
  std::vector<Bf16> values(static_cast<std::size_t>(quantised.codes.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = to_bf16(to_float(codes[i]) * unscale);
  }
  return values;
}

}  // namespace

template <>
void run(const LargestMagnitude& operation) {
  const auto& [x, magnitude] = operation;
  const Rows rows(x);
  // Integers of magnitudes have the order of the numbers; of two NaNs either will do.
  std::uint32_t largest = 0;
  with_type(x.dtype(), [&](auto element) {
    const auto* numbers = data_of<decltype(element)>(x);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      for (std::int64_t column = 0; column < rows.width(); ++column) {
        const float value = to_float(numbers[rows.offset(row) + column]);
        largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU);
      }
    }
  });
  magnitude.f32()[0] = std::bit_cast<float>(largest);
}

template <>
void run(const Quantise& operation) {
  const auto& [x, magnitude, result] = operation;
  const Rows rows(x);
  const float scale = e4m3_scale(magnitude.f32()[0]);
  auto* codes = result.codes.e4m3();
  with_type(x.dtype(), [&](auto element) {
    const auto* numbers = data_of<decltype(element)>(x);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      for (std::int64_t column = 0; column < rows.width(); ++column) {
        *codes++ = to_e4m3(to_float(numbers[rows.offset(row) + column]) * scale);
      }
    }
  });
  result.unscale.f32()[0] = e4m3_unscale(scale);
}

template <>
void run(const LinearForwardQuantised& operation) {
  const auto& [x, w, bias, y] = operation;
  auto left = values_of(x);
  auto right = values_of(w);
  run(LinearForward{{left.data(), DType::bf16, {x.codes.dim(0), x.codes.dim(1)}},
                    {right.data(), DType::bf16, {w.codes.dim(0), w.codes.dim(1)}},
                    bias,
                    y});
}

}  // namespace trireme::device::reference
