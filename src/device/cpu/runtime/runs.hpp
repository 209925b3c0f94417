// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/runtime/context.hpp"
#include "device/cpu/runtime/parallel.hpp"
#include "device/elements.hpp"
#include "device/rows.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace trireme::device::cpu {

/// Elements that are worth a thread of their own.
constexpr std::int64_t elements_per_thread = 8192;

/// Rows of this width that are worth a thread of their own.
inline std::int64_t row_grain(std::int64_t width) {
  return std::max<std::int64_t>(1, elements_per_thread / std::max<std::int64_t>(width, 1));
}

/// Visits the elements of tensors of one shape in runs that are contiguous in all of them, on
/// all threads: body(offsets, count) with the first element's offset in each tensor.
template <std::size_t tensors, typename Body>
void for_runs(const Context& context, const std::array<Tensor, tensors>& list, const Body& body) {
  using Offsets = std::array<std::int64_t, tensors>;
  bool contiguous = true;
  for (const auto& tensor : list) {
    contiguous = contiguous && tensor.contiguous();
  }
  if (contiguous) {
    parallel_for(*context.team, list[0].element_count(), elements_per_thread, [&](Range range) {
      Offsets offsets;
      offsets.fill(range.begin);
      body(offsets, range.count());
    });
    return;
  }
  const auto rows = [&]<std::size_t... index>(std::index_sequence<index...>) {
    return std::array<Rows, tensors>{Rows(list[index])...};
  }
  (std::make_index_sequence<tensors>{});
  parallel_for(*context.team, rows[0].count(), row_grain(rows[0].width()), [&](Range range) {
    for (auto row = range.begin; row < range.end; ++row) {
      Offsets offsets;
      for (std::size_t i = 0; i < tensors; ++i) offsets[i] = rows[i].offset(row);
      body(offsets, rows[0].width());
    }
  });
}

}  // namespace trireme::device::cpu
