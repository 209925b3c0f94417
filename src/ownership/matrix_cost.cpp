// SPDX-License-Identifier: Apache-2.0
#include "trireme/ownership/matrix_cost.hpp"

#include "trireme/base/contract.hpp"

#include <numeric>

namespace trireme::ownership {
namespace {

/// [n, n] work of a run, in FLOPs of full products.
double square_flops(double n, int steps) {
  return (8.0 * steps - 6.0) * n * n * n;
}

double gram_flops(double n, double m, int steps) {
  double flops = 0;
  for (const int run : newton_schulz_runs(steps)) flops += 4 * n * n * m + square_flops(n, run);
  return flops;
}

double gram_symmetric_flops(double n, double m, int steps) {
  double flops = 0;
  for (const int run : newton_schulz_runs(steps)) flops += 3 * n * n * m + square_flops(n, run) / 2;
  return flops;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

std::vector<int> newton_schulz_runs(int steps) {
  constexpr int longest = 2;
  std::vector<int> runs(static_cast<std::size_t>(steps / longest), longest);
  if (steps % longest != 0) {
    runs.insert(runs.begin() + static_cast<std::ptrdiff_t>((runs.size() + 1) / 2), steps % longest);
  }
  return runs;
}

const char* name(NewtonSchulzForm form) {
  switch (form) {
    case NewtonSchulzForm::standard:
      return "standard";
    case NewtonSchulzForm::symmetric:
      return "symmetric";
    case NewtonSchulzForm::gram:
      return "gram";
    case NewtonSchulzForm::gram_symmetric:
      return "symmetric gram";
  }
  return "";
}

double newton_schulz_flops(NewtonSchulzForm form, const MatrixShape& shape, int steps) {
  TRIREME_EXPECT(shape.shorter() > 0 && steps > 0, "a matrix and at least one step");
  const auto n = static_cast<double>(shape.shorter());
  const auto m = static_cast<double>(shape.longer());
  switch (form) {
    case NewtonSchulzForm::standard:
      return steps * (4 * n * n * m + 2 * n * n * n);
    case NewtonSchulzForm::symmetric:
      return steps * (3 * n * n * m + n * n * n);
    case NewtonSchulzForm::gram:
      return gram_flops(n, m, steps);
    case NewtonSchulzForm::gram_symmetric:
      return gram_symmetric_flops(n, m, steps);
  }
  return 0;
}

NewtonSchulzForm cheapest_newton_schulz_form(const MatrixShape& shape, int steps) {
  auto best = NewtonSchulzForm::standard;
  for (const auto form : all_newton_schulz_forms) {
    if (newton_schulz_flops(form, shape, steps) < newton_schulz_flops(best, shape, steps)) {
      best = form;
    }
  }
  return best;
}

double SplitCost::of_column() const {
  return sum(column);
}

double SplitCost::of_squares() const {
  return sum(square);
}

SplitCost split_newton_schulz(const MatrixShape& shape, int steps) {
  TRIREME_EXPECT(shape.shorter() > 0 && steps > 0, "a matrix and at least one step");
  const auto n = static_cast<double>(shape.shorter());
  const bool gram = cheapest_newton_schulz_form(shape, steps) == NewtonSchulzForm::gram_symmetric;
  const auto runs =
      gram ? newton_schulz_runs(steps) : std::vector<int>(static_cast<std::size_t>(steps), 1);
  SplitCost cost;
  double product_with_q = 0;
  for (const int run : runs) {
    cost.column.push_back(product_with_q + n * n);
    cost.square.push_back(square_flops(n, run) / 2);
    product_with_q = 2 * n * n;
  }
  cost.column.push_back(product_with_q);
  return cost;
}

}  // namespace trireme::ownership
