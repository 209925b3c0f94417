// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace trireme::testing {

/// Matrix of doubles, row after row, for rules written down plainly.
struct Plain {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> values;

  double at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

inline Plain transposed(const Plain& x) {
  Plain result{x.columns, x.rows, {}};
  for (std::size_t j = 0; j < x.columns; ++j) {
    for (std::size_t i = 0; i < x.rows; ++i) result.values.push_back(x.at(i, j));
  }
  return result;
}

inline Plain operator*(const Plain& x, const Plain& y) {
  Plain result{x.rows, y.columns, {}};
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t j = 0; j < y.columns; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < x.columns; ++k) sum += x.at(i, k) * y.at(k, j);
      result.values.push_back(sum);
    }
  }
  return result;
}

inline Plain combined(double a, const Plain& x, double b, const Plain& y) {
  Plain result = x;
  for (std::size_t at = 0; at < x.values.size(); ++at) {
    result.values[at] = a * x.values[at] + b * y.values[at];
  }
  return result;
}

struct PlainStep {
  double a;
  double b;
  double c;
};

/// Published form: A = X Xᵀ, B = b A + c A A, X <- a X + B X, of the transposed matrix where it has
/// more rows than columns.
inline Plain newton_schulz(const Plain& u, const std::vector<PlainStep>& steps) {
  double squares = 0;
  for (const double value : u.values) squares += value * value;
  Plain x = u;
  for (auto& value : x.values) value /= std::sqrt(squares) + 1e-7;
  const bool tall = u.rows > u.columns;
  if (tall) x = transposed(x);
  for (const auto& [a, b, c] : steps) {
    const auto gram = x * transposed(x);
    x = combined(a, x, 1.0, combined(b, gram, c, gram * gram) * x);
  }
  return tall ? transposed(x) : x;
}

}  // namespace trireme::testing
