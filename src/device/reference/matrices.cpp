// SPDX-License-Identifier: Apache-2.0
#include "device/elements.hpp"
#include "device/matrix_rows.hpp"
#include "device/reference/reference.hpp"

#include <cmath>
#include <numeric>
#include <vector>

namespace trireme::device::reference {
namespace {

/// finish(row, column, sum over k of a(row, k) * b(k, column)), with sums in double.
template <typename A, typename B, typename Finish>
void multiply(std::int64_t rows, std::int64_t inner, std::int64_t columns, const A& a, const B& b,
              const Finish& finish) {
  std::vector<double> sums(static_cast<std::size_t>(columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    sums.assign(sums.size(), 0.0);
    for (std::int64_t k = 0; k < inner; ++k) {
      const auto factor = static_cast<double>(a(row, k));
      for (std::int64_t column = 0; column < columns; ++column) {
        sums[static_cast<std::size_t>(column)] += factor * static_cast<double>(b(k, column));
      }
    }
    for (std::int64_t column = 0; column < columns; ++column) {
      finish(row, column, static_cast<float>(sums[static_cast<std::size_t>(column)]));
    }
  }
}

}  // namespace

template <>
void run(const NormaliseMatrices& operation) {
  const auto& [x, y, eps] = operation;
  const auto size = x.dim(1) * x.dim(2);
  with_type(y.dtype(), [&](auto element) {
    auto* const to = data_of<decltype(element)>(y);
    for (std::int64_t first = 0; first < x.element_count(); first += size) {
      double squares = 0;
      for (auto i = first; i < first + size; ++i) {
        squares += static_cast<double>(x.f32()[i]) * static_cast<double>(x.f32()[i]);
      }
      const float norm = static_cast<float>(std::sqrt(squares)) + operation.eps;
      for (auto i = first; i < first + size; ++i) assign(to[i], x.f32()[i] / norm);
    }
  });
}

template <>
void run(const MatrixNorms& operation) {
  const auto& [x, norms] = operation;
  const auto size = x.dim(1) * x.dim(2);
  for (std::int64_t index = 0; index < x.dim(0); ++index) {
    const auto one = x.slice(0, index, 1).reshape({size});
    norms.f32()[index] = static_cast<float>(std::sqrt(sum_of_squares(one)));
  }
}

template <>
void run(const TransposeMatrices& operation) {
  const auto& [x, y] = operation;
  const auto rows = x.dim(1);
  const auto columns = x.dim(2);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t first = 0; first < x.element_count(); first += rows * columns) {
      const auto* const from = data_of<T>(x) + first;
      auto* const to = data_of<T>(y) + first;
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
      }
    }
  });
}

template <>
void run(const ScaleRows& operation) {
  const auto& [x, factors, y] = operation;
  const auto columns = x.dim(1);
  for (std::int64_t at = 0; at < x.element_count(); ++at) {
    y.f32()[at] = x.f32()[at] * factors.f32()[at / columns];
  }
}

template <>
void run(const RowProducts& operation) {
  const auto& [x, y, sums] = operation;
  const auto columns = x.dim(1);
  for (std::int64_t row = 0; row < x.dim(0); ++row) {
    const float* const a = x.f32() + row * columns;
    store_words(std::inner_product(a, a + columns, y.f32() + row * columns, 0.0),
                sums.i32() + 2 * row);
  }
}

template <>
void run(const SymmetricProduct& operation) {
  const auto& [x, added, y, scale, added_scale, triangles, by] = operation;
  const auto n = x.dim(1);
  const auto m = x.dim(2);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t index = 0; index < x.dim(0); ++index) {
      const auto* const from = data_of<T>(x) + index * n * m;
      const auto* const other = operation.by ? data_of<T>(operation.by) + index * n * m : from;
      const auto* const term =
          operation.added ? data_of<T>(operation.added) + index * n * n : nullptr;
      auto* const to = data_of<T>(y) + index * n * n;
      multiply(
          n, m, n, [&](auto row, auto k) { return to_float(from[row * m + k]); },
          [&](auto k, auto column) { return to_float(other[column * m + k]); },
          [&](auto row, auto column, float sum) {
            const auto at = row * n + column;
            const float more = term != nullptr ? operation.added_scale * to_float(term[at]) : 0.0F;
            assign(to[at], operation.scale * sum + more);
          });
    }
  });
}

template <>
void run(const AddProduct& operation) {
  const auto& [s, x, z, scale] = operation;
  const auto n = x.dim(1);
  const auto m = x.dim(2);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t index = 0; index < x.dim(0); ++index) {
      const auto* const factor = data_of<T>(s) + index * n * n;
      const auto* const from = data_of<T>(x) + index * n * m;
      auto* const to = data_of<T>(z) + index * n * m;
      multiply(
          n, n, m, [&](auto row, auto k) { return to_float(factor[row * n + k]); },
          [&](auto k, auto column) { return to_float(from[k * m + column]); },
          [&](auto row, auto column, float sum) {
            const auto at = row * m + column;
            assign(to[at], operation.scale * to_float(from[at]) + sum);
          });
    }
  });
}

}  // namespace trireme::device::reference
