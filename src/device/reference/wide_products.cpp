// SPDX-License-Identifier: Apache-2.0
#include "device/wide_products.hpp"

#include "device/reference/reference.hpp"

namespace trireme::device::reference {

template <>
void run(const SymmetricRankUpdate& operation) {
  const auto& [x, sum, kept] = operation;
  const auto n = x.dim(1);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double products = 0;
      for (std::int64_t k = 0; k < x.dim(0); ++k) {
        products +=
            static_cast<double>(x.f32()[k * n + i]) * static_cast<double>(x.f32()[k * n + j]);
      }
      const auto at = i * n + j;
      const auto share = static_cast<double>(kept);
      set_wide(sum.high.f32(), sum.low.f32(), at,
               share * wide_at(sum.high.f32(), sum.low.f32(), at) + (1.0 - share) * products);
    }
  }
}

template <>
void run(const WideProduct& operation) {
  const auto& [x, s, y] = operation;
  const auto inner = x.dim(1);
  const auto columns = y.dim(1);
  for (std::int64_t i = 0; i < y.dim(0); ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double total = 0;
      for (std::int64_t k = 0; k < inner; ++k) {
        total += static_cast<double>(x.f32()[i * inner + k]) *
                 wide_at(s.high.f32(), s.low.f32(), k * columns + j);
      }
      y.f32()[i * columns + j] = static_cast<float>(total);
    }
  }
}

}  // namespace trireme::device::reference
