// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

/// Counted floating-point operations of update rules that need whole matrices. A product of [a, b]
/// with [b, c] counts 2 a b c; a symmetric product of which one triangle is computed counts half.
namespace trireme::ownership {

struct MatrixShape {
  std::int64_t rows = 0;
  /// 0 for a vector.
  std::int64_t columns = 0;

  std::int64_t shorter() const { return std::min(rows, columns); }
  std::int64_t longer() const { return std::max(rows, columns); }
  bool operator==(const MatrixShape&) const = default;
};

/// Work on a matrix that comes once in `every` updates, in those whose number leaves the remainder
/// `turn`.
struct Renewal {
  double flops = 0;  ///< 0: there is none
  std::int64_t every = 1;
  std::int64_t turn = 0;

  /// The same in another turn.
  Renewal at(std::int64_t other) const { return {flops, every, other}; }
  bool operator==(const Renewal&) const = default;
};

/// Ways to compute one Newton-Schulz iteration of X [n, m], n <= m (Jordan et al. 2024, Muon). A
/// step is A = X X^T, B = b A + c A A, X <- a X + B X.
enum class NewtonSchulzForm {
  standard,       ///< 4 n^2 m + 2 n^3 a step
  symmetric,      ///< 3 n^2 m + n^3: one triangle of A and of A A
  gram,           ///< iterates on X X^T [n, n] alone, started again from X after each run of steps
  gram_symmetric  ///< the same with one triangle of every symmetric product
};
inline constexpr NewtonSchulzForm all_newton_schulz_forms[] = {
    NewtonSchulzForm::standard, NewtonSchulzForm::symmetric, NewtonSchulzForm::gram,
    NewtonSchulzForm::gram_symmetric};
const char* name(NewtonSchulzForm form);

inline constexpr int default_newton_schulz_steps = 5;

/// Steps of each run of a Gram form, between two products with X: two, and one in the middle where
/// their number is odd. Longer runs drift in bf16 from what R = X X^T says: with the published 2 +
/// 3 singular values of up to 1.8 were seen where the iteration ends at 1.12. Of 1 + 2 + 2, 2 + 1 +
/// 2 and 2 + 2 + 1 the second has the smallest largest error over the lists of coefficients.
std::vector<int> newton_schulz_runs(int steps);

/// FLOPs of all steps. With five steps: 5 (4 n^2 m + 2 n^3), 5 (3 n^2 m + n^3), 12 n^2 m + 22 n^3
/// and 9 n^2 m + 11 n^3. A run of k steps in Gram form takes one X X^T and one product with X, and
/// on [n, n] matrices k squares R R, k - 1 products Q (a I + Z), where Z = b R + c R R, and 2 (k -
/// 1) of (a I + Z) R (a I + Z): 8 k - 6 times n^3.
double newton_schulz_flops(NewtonSchulzForm form, const MatrixShape& shape,
                           int steps = default_newton_schulz_steps);

/// The form with the fewest FLOPs; of equals the first.
NewtonSchulzForm cheapest_newton_schulz_form(const MatrixShape& shape,
                                             int steps = default_newton_schulz_steps);

/// FLOPs of an update whose matrix lies by columns (of the longer side) on several ranks: rounds of
/// work on columns, in each of which a rank works on its own, and between two rounds work on an
/// [n, n] matrix that one rank does. What enters that work is the sum of the ranks' terms; its
/// result goes to all of them.
struct SplitCost {
  /// FLOPs of one column, by round. Empty for a rule that cannot be split.
  std::vector<double> column;
  /// FLOPs of the [n, n] work behind each round but the last.
  std::vector<double> square;

  bool possible() const { return !column.empty(); }
  double of_column() const;
  double of_squares() const;
  bool operator==(const SplitCost&) const = default;
};

/// Newton-Schulz of which one triangle of each symmetric product is computed, in the cheapest form:
/// X X^T; Q X and again (Q X) (Q X)^T, for each run; Q X. In the symmetric form, cheapest for
/// squares, a run is one step, and Q = a I + B.
SplitCost split_newton_schulz(const MatrixShape& shape, int steps = default_newton_schulz_steps);

}  // namespace trireme::ownership
