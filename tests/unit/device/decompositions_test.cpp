// SPDX-License-Identifier: Apache-2.0
// Eigenvectors, orthonormal rows and what rules make of them.
#include "unit/device/backends.hpp"
#include "unit/device/compare.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

/// Row `row` of matrix `matrix` of a batch [count, n, n], in double.
std::vector<double> row_of(const TestTensor& batch, std::int64_t matrix, std::int64_t row) {
  const auto n = batch.view().dim(2);
  const auto all = batch.values();
  const auto first = all.begin() + (matrix * n + row) * n;
  return {first, first + n};
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t at = 0; at < a.size(); ++at) sum += a[at] * b[at];
  return sum;
}

/// How far the rows of a matrix are from orthonormal ones.
double error_of_rows(const TestTensor& batch, std::int64_t matrix) {
  const auto n = batch.view().dim(2);
  double error = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      const double found = product(row_of(batch, matrix, i), row_of(batch, matrix, j));
      const double off = std::abs(found - (i == j ? 1.0 : 0.0));
      error = std::isfinite(off) ? std::max(error, off) : INFINITY;
    }
  }
  return error;
}

struct Eigen {
  Eigen(std::int64_t count, std::int64_t n)
      : x(DType::f32, {count, n, n}),
        vectors(DType::f32, {count, n, n}),
        values(DType::f32, {count, n}),
        scratch(DType::f32, {decomposition_scratch(n)}) {}
  void run(Kernels& kernels) {
    kernels.issue(SymmetricEigen{x, vectors, values, scratch});
    CHECK(vectors.written_exactly());
    CHECK(values.written_exactly());
  }
  /// Sums of products of random rows, some of which are none where `rank` is less than n.
  void fill(std::int64_t rank) {
    const auto count = x.view().dim(0);
    const auto n = x.view().dim(1);
    TestTensor rows(DType::f32, {count, n, rank});
    rows.randomise(1);
    make_reference_kernels()->issue(SymmetricProduct{rows, {}, x, 1.0F / static_cast<float>(rank)});
  }

  TestTensor x, vectors, values, scratch;
};

}  // namespace

TEST_CASE("eigenvectors of matrices worked by hand") {
  for_each_backend([](Kernels& kernels) {
    Eigen two(2, 2);
    two.x.set({2, 1, 1, 2, 5, 0, 0, -3});
    two.run(kernels);
    CHECK(relative_error(two.values.values(), {1, 3, -3, 5}) < 1e-6);
    const auto root = static_cast<float>(std::sqrt(0.5));
    auto vectors = two.vectors.values();
    for (auto& each : vectors) each = std::abs(each);
    CHECK(relative_error(vectors, {root, root, root, root, 0, 1, 1, 0}) < 1e-6);
    // Those of 1 and 3 are across and along the diagonal, whatever their signs.
    CHECK(two.vectors.at(0) * two.vectors.at(1) < 0);
    CHECK(two.vectors.at(2) * two.vectors.at(3) > 0);
    Eigen one(1, 1);
    one.x.set({-4});
    one.run(kernels);
    CHECK(one.values.at(0) == -4);
    CHECK(std::abs(one.vectors.at(0)) == 1);
  });
}

TEST_CASE("eigenvectors are orthonormal, in the order of their values, and make the matrix") {
  for_each_backend([](Kernels& kernels) {
    for (const std::int64_t rank : {20, 5}) {
      constexpr std::int64_t n = 17;
      Eigen eigen(3, n);
      eigen.fill(rank);
      const auto before = eigen.x.values();
      eigen.run(kernels);
      CHECK(eigen.x.values() == before);
      const auto values = eigen.values.values();
      for (std::int64_t matrix = 0; matrix < 3; ++matrix) {
        const auto own = values.begin() + matrix * n;
        CHECK(std::is_sorted(own, own + n));
        CHECK(error_of_rows(eigen.vectors, matrix) < 1e-5);
        double error = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const auto vector = row_of(eigen.vectors, matrix, i);
          for (std::int64_t row = 0; row < n; ++row) {
            const double image = product(row_of(eigen.x, matrix, row), vector);
            const double due = static_cast<double>(own[i]) * vector[static_cast<std::size_t>(row)];
            error = std::max(error, std::abs(image - due));
          }
        }
        CHECK(error < 1e-5 * static_cast<double>(own[n - 1]));
      }
    }
  });
}

TEST_CASE("a decomposition has the same bits alone and in a batch") {
  for_each_backend([](Kernels& kernels) {
    Eigen all(3, 13);
    all.fill(16);
    all.run(kernels);
    Eigen one(1, 13);
    const auto from = all.x.values();
    one.x.set({from.end() - 13 * 13, from.end()});
    one.run(kernels);
    const auto vectors = all.vectors.values();
    CHECK(std::vector<float>(vectors.end() - 13 * 13, vectors.end()) == one.vectors.values());
    kernels.issue(OrthonormaliseRows{all.x, all.scratch});
    kernels.issue(OrthonormaliseRows{one.x, one.scratch});
    const auto rows = all.x.values();
    CHECK(std::vector<float>(rows.end() - 13 * 13, rows.end()) == one.x.values());
  });
}

TEST_CASE("rows become orthonormal, the first of them spanning what they did") {
  for_each_backend([](Kernels& kernels) {
    constexpr std::int64_t n = 19;
    TestTensor x(DType::f32, {2, n, n});
    TestTensor before(DType::f32, {2, n, n});
    TestTensor scratch(DType::f32, {decomposition_scratch(n)});
    x.randomise(3);
    before.set(x.values());
    kernels.issue(OrthonormaliseRows{x, scratch});
    for (std::int64_t matrix = 0; matrix < 2; ++matrix) {
      CHECK(error_of_rows(x, matrix) < 1e-5);
      // A former row has no part along later ones.
      double error = 0;
      for (std::int64_t row = 0; row < n; ++row) {
        for (auto later = row + 1; later < n; ++later) {
          const double part = product(row_of(before, matrix, row), row_of(x, matrix, later));
          error = std::max(error, std::abs(part));
        }
      }
      CHECK(error < 1e-4);
    }
  });
}

TEST_CASE("rows are scaled by powers of their values, and by 1 where none is positive") {
  for_each_backend([](Kernels& kernels) {
    TestTensor x(DType::f32, {3, 2, 2});
    TestTensor values(DType::f32, {3, 2});
    x.set({1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4});
    values.set({-5, 16, 0, 0, -2, -1});
    kernels.issue(ScaleByPowers{x, values, 0.0625F, -0.5F});
    // 0 and 16, raised by 1.
    const auto low = static_cast<float>(1 / std::sqrt(17.0));
    CHECK(relative_error(x.values(), {1, 2, 3 * low, 4 * low, 1, 2, 3, 4, 1, 2, 3, 4}) < 1e-6);
  });
}

TEST_CASE("matrices take the norms of others, and stay zero where they are") {
  for_each_backend([](Kernels& kernels) {
    TestTensor x(DType::f32, {3, 1, 2});
    TestTensor like(DType::f32, {3, 1, 2});
    TestTensor y(DType::f32, {3, 1, 2});
    x.set({3, 4, 0, 0, 1e-25F, 0});
    like.set({0, 10, 1, 1, 0, 1});
    kernels.issue(MatchNorms{x, like, y});
    CHECK(y.written_exactly());
    CHECK(relative_error(y.values(), {6, 8, 0, 0, 1, 0}) < 1e-6);
  });
}

TEST_CASE("powers and norms are the reference's") {
  std::vector<std::int64_t> sides{1, 7, 33};
  if (take_large_shapes()) sides.push_back(260);
  for (const auto n : sides) {
    INFO(n);
    compare(DType::f32, [n](Kernels& kernels) {
      TestTensor x(DType::f32, {2, n, n});
      TestTensor like(DType::f32, {2, n, n});
      TestTensor y(DType::f32, {2, n, n});
      TestTensor values(DType::f32, {2, n});
      x.randomise(1);
      like.randomise(2);
      std::vector<float> ascending;
      for (std::int64_t at = 0; at < 2 * n; ++at) {
        ascending.push_back(static_cast<float>(at % n) * 0.3F - 0.5F);
      }
      values.set(ascending);
      kernels.issue(MatchNorms{x, like, y});
      kernels.issue(ScaleByPowers{x, values, 1e-5F, -0.125F});
      return all({x, y});
    });
  }
}
