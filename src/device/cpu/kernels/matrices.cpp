// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/kernels/arithmetic.hpp"
#include "device/cpu/kernels/run.hpp"
#include "device/cpu/kernels/transpose.hpp"
#include "device/cpu/runtime/runs.hpp"
#include "device/matrix_rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace trireme::device::cpu {

template <>
void run(Context& context, const NormaliseMatrices& operation) {
  const auto& [x, y, eps] = operation;
  const auto size = x.dim(1) * x.dim(2);
  for (std::int64_t index = 0; index < x.dim(0); ++index) {
    const auto one = x.slice(0, index, 1);
    const float norm = static_cast<float>(std::sqrt(sum_of_squares(context, one))) + eps;
    const float* const from = one.f32();
    with_type(y.dtype(), [&](auto element) {
      auto* const to = data_of<decltype(element)>(operation.y) + index * size;
      parallel_for(*context.team, size, elements_per_thread, [=](Range range) {
        for (auto i = range.begin; i < range.end; ++i) assign(to[i], from[i] / norm);
      });
    });
  }
}

template <>
void run(Context& context, const MatrixNorms& operation) {
  const auto& [x, norms] = operation;
  const auto size = x.dim(1) * x.dim(2);
  for (std::int64_t index = 0; index < x.dim(0); ++index) {
    const auto one = x.slice(0, index, 1).reshape({size});
    norms.f32()[index] = static_cast<float>(std::sqrt(sum_of_squares(context, one)));
  }
}

template <>
void run(Context& context, const TransposeMatrices& operation) {
  const auto& [x, y] = operation;
  const auto rows = x.dim(1);
  const auto columns = x.dim(2);
  // Threads take bands of rows, whole lines of the cache of what they write.
  constexpr std::int64_t side = 32;
  const auto bands = (rows + side - 1) / side;
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto* const from = data_of<T>(operation.x);
    auto* const to = data_of<T>(operation.y);
    parallel_for(*context.team, operation.x.dim(0) * bands, 1, [=](Range range) {
      for (auto index = range.begin; index < range.end; ++index) {
        const auto first = index / bands * rows * columns;
        const auto begin = index % bands * side;
        transpose(from + first + begin * columns, columns, std::min(side, rows - begin), columns,
                  to + first + begin, rows);
      }
    });
  });
}

template <>
void run(Context& context, const ScaleRows& operation) {
  const auto& [x, factors, y] = operation;
  const auto columns = x.dim(1);
  const float* const from = x.f32();
  const float* const factor = factors.f32();
  float* const to = y.f32();
  parallel_for(*context.team, x.dim(0), row_grain(columns), [=](Range range) {
    for (auto row = range.begin; row < range.end; ++row) {
      for (auto at = row * columns; at < (row + 1) * columns; ++at) to[at] = from[at] * factor[row];
    }
  });
}

template <>
void run(Context& context, const RowProducts& operation) {
  const auto& [x, y, sums] = operation;
  const auto columns = x.dim(1);
  const float* const a = x.f32();
  const float* const b = y.f32();
  std::int32_t* const words = sums.i32();
  parallel_for(*context.team, x.dim(0), row_grain(columns), [=](Range range) {
    for (auto row = range.begin; row < range.end; ++row) {
      const float* const first = a + row * columns;
      store_words(std::inner_product(first, first + columns, b + row * columns, 0.0),
                  words + 2 * row);
    }
  });
}

}  // namespace trireme::device::cpu
