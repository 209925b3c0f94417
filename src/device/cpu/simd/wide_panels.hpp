// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Products of two panels of doubles, the innermost loop of device/cpu/gemm/wide_gemm.hpp.
namespace trireme::device::cpu {

struct WidePanelTable {
  std::int64_t rows;     ///< of a left panel, which holds them side by side for each k
  std::int64_t columns;  ///< of a right panel, likewise
  /// c[i * stride + j] += sum over k < depth of left[k * rows + i] * right[k * columns + j].
  void (*multiply)(const double* left, const double* right, std::int64_t depth, double* c,
                   std::int64_t stride);
};

/// Rows of a left panel: with two vectors of columns, as many sums as hide the latency of their
/// multiply-adds, in half of the registers.
template <typename Doubles>
constexpr std::int64_t wide_panel_rows = Doubles::registers / 4;

template <typename Doubles>
void multiply_wide_panels(const double* left, const double* right, std::int64_t depth, double* c,
                          std::int64_t stride) {
  constexpr auto rows = wide_panel_rows<Doubles>;
  constexpr auto width = Doubles::width;
  Doubles sums[rows][2];
  for (std::int64_t i = 0; i < rows; ++i) {
    sums[i][0] = Doubles::load(c + i * stride);
    sums[i][1] = Doubles::load(c + i * stride + width);
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    const auto first = Doubles::load(right);
    const auto second = Doubles::load(right + width);
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto factor = Doubles::of(left[i]);
      sums[i][0] = fma(factor, first, sums[i][0]);
      sums[i][1] = fma(factor, second, sums[i][1]);
    }
    left += rows;
    right += 2 * width;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    sums[i][0].store(c + i * stride);
    sums[i][1].store(c + i * stride + width);
  }
}

template <typename Instructions>
constexpr WidePanelTable wide_panel_table() {
  using Doubles = typename Instructions::Doubles;
  return {wide_panel_rows<Doubles>, 2 * Doubles::width, multiply_wide_panels<Doubles>};
}

}  // namespace trireme::device::cpu
