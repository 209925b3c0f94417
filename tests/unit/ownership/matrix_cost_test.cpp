// SPDX-License-Identifier: Apache-2.0
#include "trireme/ownership/matrix_cost.hpp"

#include <catch2/catch.hpp>

using namespace trireme::ownership;

TEST_CASE("five steps of Newton-Schulz cost what the four forms count") {
  // In n^3 for m = 4 n, worked by hand.
  const MatrixShape shape{256, 1024};
  const double n3 = 256.0 * 256.0 * 256.0;
  CHECK(newton_schulz_flops(NewtonSchulzForm::standard, shape) == 90 * n3);
  CHECK(newton_schulz_flops(NewtonSchulzForm::symmetric, shape) == 65 * n3);
  CHECK(newton_schulz_flops(NewtonSchulzForm::gram, shape) == 70 * n3);
  CHECK(newton_schulz_flops(NewtonSchulzForm::gram_symmetric, shape) == 47 * n3);
  for (const auto form : all_newton_schulz_forms) {
    CHECK(newton_schulz_flops(form, shape) == newton_schulz_flops(form, {1024, 256}));
  }
}

TEST_CASE("one step costs the same in Gram form as in the others, and no step starts again") {
  const MatrixShape shape{8, 20};
  CHECK(newton_schulz_flops(NewtonSchulzForm::gram, shape, 1) ==
        newton_schulz_flops(NewtonSchulzForm::standard, shape, 1));
  // Two steps: X X^T and Q X once, of [n, n] two squares, one product with Q, two for the next R.
  CHECK(newton_schulz_flops(NewtonSchulzForm::gram, shape, 2) == 4 * 64 * 20 + 10 * 512);
}

TEST_CASE("runs of two steps have a lone one in their middle") {
  CHECK(newton_schulz_runs(1) == std::vector<int>{1});
  CHECK(newton_schulz_runs(2) == std::vector<int>{2});
  CHECK(newton_schulz_runs(3) == std::vector<int>{2, 1});
  CHECK(newton_schulz_runs(5) == std::vector<int>{2, 1, 2});
  CHECK(newton_schulz_runs(8) == std::vector<int>{2, 2, 2, 2});
}

TEST_CASE("the cheapest form is symmetric for squares, symmetric Gram for longer matrices") {
  CHECK(cheapest_newton_schulz_form({512, 512}) == NewtonSchulzForm::symmetric);
  CHECK(cheapest_newton_schulz_form({512, 1024}) == NewtonSchulzForm::gram_symmetric);
  CHECK(cheapest_newton_schulz_form({1, 4096}) == NewtonSchulzForm::gram_symmetric);
}

TEST_CASE("a split update costs in all what the cheapest form costs") {
  for (const int steps : {1, 2, 3, 5, 8}) {
    for (const MatrixShape shape : {MatrixShape{64, 320}, {96, 96}, {5120, 128}, {1, 7}}) {
      const auto split = split_newton_schulz(shape, steps);
      CHECK(split.possible());
      CHECK(split.column.size() == split.square.size() + 1);
      CHECK(split.of_column() * static_cast<double>(shape.longer()) + split.of_squares() ==
            newton_schulz_flops(cheapest_newton_schulz_form(shape, steps), shape, steps));
    }
  }
  // Squares in five runs of one step, with less [n, n] work in a row than in Gram form.
  CHECK(split_newton_schulz({4, 4}).square == std::vector<double>(5, 64));
  // Three runs: steps 1 and 2, step 3, steps 4 and 5.
  const auto split = split_newton_schulz({2, 8});
  CHECK(split.column == std::vector<double>{4, 12, 12, 8});
  CHECK(split.square == std::vector<double>{5 * 8, 1 * 8, 5 * 8});
}

TEST_CASE("every form has a name of its own") {
  for (const auto a : all_newton_schulz_forms) {
    CHECK_FALSE(std::string(name(a)).empty());
    for (const auto b : all_newton_schulz_forms) {
      CHECK((a == b) == (std::string(name(a)) == name(b)));
    }
  }
}
