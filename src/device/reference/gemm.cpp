// SPDX-License-Identifier: Apache-2.0
#include "device/elements.hpp"
#include "device/fused_operations.hpp"
#include "device/reference/reference.hpp"
#include "device/rows.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace trireme::device::reference {
namespace {

/// A matrix seen in either orientation.
template <typename T>
struct Matrix {
  const T* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;

  float at(std::int64_t row, std::int64_t column) const {
    return to_float(data[row * row_stride + column * column_stride]);
  }
  Matrix transposed() const { return {data, column_stride, row_stride}; }
};

/// Rows are all dimensions but the last.
template <typename T>
Matrix<T> matrix_of(const Tensor& tensor) {
  return {data_of<T>(tensor), Rows(tensor).stride(), 1};
}

struct Extent {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
};

/// Columns of the result that are summed side by side, which is what the compiler vectorises.
constexpr std::int64_t block_columns = 32;
/// The inner dimension is summed in pieces of this length and the pieces in order: fewer
/// roundings pile up, and a piece of b stays in the cache.
constexpr std::int64_t block_inner = 128;

using Sums = std::array<float, block_columns>;

/// sums[c] of one row over one piece: sum over k of a[k] * b[k][c].
void multiply_piece(const float* a, const float* b, std::int64_t inner, Sums& sums) {
  sums.fill(0.0F);
  for (std::int64_t k = 0; k < inner; ++k) {
    for (std::int64_t c = 0; c < block_columns; ++c) {
      sums[static_cast<std::size_t>(c)] += a[k] * b[k * block_columns + c];
    }
  }
}

/// finish(row, column, sum) for every element of a * b.
template <typename A, typename B, typename Finish>
void multiply(const Extent& extent, const Matrix<A>& a, const Matrix<B>& b, Finish&& finish) {
  std::vector<float> piece(block_inner * block_columns);
  std::array<float, block_inner> a_row{};
  std::vector<Sums> totals(static_cast<std::size_t>(extent.rows));
  for (std::int64_t column = 0; column < extent.columns; column += block_columns) {
    const auto columns = std::min(block_columns, extent.columns - column);
    for (auto& total : totals) total.fill(0.0F);
    for (std::int64_t k = 0; k < extent.inner; k += block_inner) {
      const auto inner = std::min(block_inner, extent.inner - k);
      for (std::int64_t i = 0; i < inner; ++i) {
        for (std::int64_t c = 0; c < columns; ++c) {
          piece[static_cast<std::size_t>(i * block_columns + c)] = b.at(k + i, column + c);
        }
      }
      for (std::int64_t row = 0; row < extent.rows; ++row) {
        for (std::int64_t i = 0; i < inner; ++i) {
          a_row[static_cast<std::size_t>(i)] = a.at(row, k + i);
        }
        Sums sums;
        multiply_piece(a_row.data(), piece.data(), inner, sums);
        auto& total = totals[static_cast<std::size_t>(row)];
        for (std::size_t c = 0; c < sums.size(); ++c) total[c] += sums[c];
      }
    }
    for (std::int64_t row = 0; row < extent.rows; ++row) {
      for (std::int64_t c = 0; c < columns; ++c) {
        finish(row, column + c, totals[static_cast<std::size_t>(row)][static_cast<std::size_t>(c)]);
      }
    }
  }
}

}  // namespace

template <>
void run(const LinearForward& operation) {
  const auto& [x, w, bias, y] = operation;
  const Extent extent{Rows(x).count(), w.dim(0), w.dim(1)};
  with_type(x.dtype(), [&](auto in) {
    using In = decltype(in);
    with_type(y.dtype(), [&](auto out) {
      using Out = decltype(out);
      const auto* offsets = data_of<In>(bias);
      auto* to = data_of<Out>(y);
      const auto stride = matrix_of<Out>(y).row_stride;
      multiply(extent, matrix_of<In>(x), matrix_of<In>(w).transposed(),
               [&](std::int64_t row, std::int64_t column, float sum) {
                 if (offsets != nullptr) sum += to_float(offsets[column]);
                 assign(to[row * stride + column], sum);
               });
    });
  });
}

template <>
void run(const LinearBackwardInput& operation) {
  const auto& [dy, w, dx] = operation;
  const Extent extent{Rows(dy).count(), w.dim(1), w.dim(0)};
  with_type(dy.dtype(), [&](auto element) {
    using T = decltype(element);
    auto* to = data_of<T>(dx);
    const auto stride = matrix_of<T>(dx).row_stride;
    multiply(extent, matrix_of<T>(dy), matrix_of<T>(w),
             [&](std::int64_t row, std::int64_t column, float sum) {
               assign(to[row * stride + column], sum);
             });
  });
}

template <>
void run(const LinearBackwardWeight& operation) {
  const auto& [dy, x, dw, d_bias] = operation;
  const Extent extent{dw.dim(0), dw.dim(1), Rows(x).count()};
  with_type(dy.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto gradient = matrix_of<T>(dy);
    auto* to = dw.f32();
    const auto stride = matrix_of<float>(dw).row_stride;
    multiply(extent, gradient.transposed(), matrix_of<T>(x),
             [&](std::int64_t row, std::int64_t column, float sum) {
               to[row * stride + column] += sum;
             });
    if (!d_bias) return;
    for (std::int64_t column = 0; column < extent.rows; ++column) {
      double sum = 0;
      for (std::int64_t row = 0; row < extent.inner; ++row) {
        sum += static_cast<double>(gradient.at(row, column));
      }
      d_bias.f32()[column] += static_cast<float>(sum);
    }
  });
}

template <>
void run(const LinearGeluForward& fused) {
  run_parts(fused, [](const auto& part) { run(part); });
}

template <>
void run(const LinearBackwardGelu& fused) {
  run_parts(fused, [](const auto& part) { run(part); });
}

}  // namespace trireme::device::reference
