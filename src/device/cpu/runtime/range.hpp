// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace trireme::device::cpu {

/// A half-open range of rows, columns or elements.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - begin; }
};

/// Part `index` of [0, count) cut into `parts`, at multiples of `grain`.
inline Range part_of(std::int64_t count, std::int64_t grain, int parts, int index) {
  const auto grains = (count + grain - 1) / grain;
  const auto edge = [&](std::int64_t part) {
    return std::min(count, grains * part / parts * grain);
  };
  return {edge(index), edge(index + 1)};
}

}  // namespace trireme::device::cpu
