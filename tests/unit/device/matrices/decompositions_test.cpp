// SPDX-License-Identifier: Apache-2.0
// Eigenvectors and orthonormal rows by what they must be: a library chooses their signs, and which
// they are where eigenvalues are equal.
#include "trireme/device/arena.hpp"

#include "unit/device/backends.hpp"
#include "unit/device/compare.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

/// Sides of one element, odd, longer than a block of LAPACK's; the last ones are long for tests.
std::vector<std::int64_t> sides() {
  std::vector<std::int64_t> all{1, 2, 5, 16, 33, 70};
  if (take_large_shapes()) all.insert(all.end(), {129, 300});
  return all;
}

struct Decomposed {
  explicit Decomposed(std::int64_t side)
      : n(side),
        x(DType::f32, {n, n}),
        vectors(DType::f32, {n, n}),
        values(DType::f32, {n}),
        memory(Arena::host(Purpose::workspace, static_cast<std::size_t>(n * n * 8 + n * 64 + 512))),
        workspace(memory, n) {}

  void find_eigenvectors(Kernels& kernels) {
    kernels.issue(SymmetricEigenvectors{{x}, vectors, values, workspace});
  }
  void orthonormalise(Kernels& kernels) { kernels.issue(OrthonormaliseRows{x, values, workspace}); }
  /// transpose(B) B of random numbers in `rank` rows.
  void make_symmetric(std::int64_t rank) {
    TestTensor b(DType::f32, {1, n, rank});
    b.randomise(3);
    make_reference_kernels()->issue(
        SymmetricProduct{b, {}, x.view().reshape({1, n, n}), 1.0F, 0.0F, Triangles::both});
  }

  std::int64_t n;
  TestTensor x, vectors, values;
  Arena memory;
  DecompositionWorkspace workspace;
};

double inner(const std::vector<float>& a, std::int64_t row, const std::vector<float>& b,
             std::int64_t other, std::int64_t n) {
  double sum = 0;
  for (std::int64_t at = 0; at < n; ++at) {
    sum += static_cast<double>(a[static_cast<std::size_t>(row * n + at)]) *
           static_cast<double>(b[static_cast<std::size_t>(other * n + at)]);
  }
  return sum;
}

/// Farthest that an inner product of two rows is from that of two unit vectors.
double away_from_orthonormal(const std::vector<float>& rows, std::int64_t n) {
  double worst = 0;
  for (std::int64_t a = 0; a < n; ++a) {
    for (std::int64_t b = 0; b <= a; ++b) {
      const double away = std::abs(inner(rows, a, rows, b, n) - (a == b ? 1 : 0));
      worst = std::isfinite(away) ? std::max(worst, away) : std::numeric_limits<double>::infinity();
    }
  }
  return worst;
}

/// Longest of x v - value v, over the largest value.
double residual(const Decomposed& of) {
  const auto x = of.x.values();
  const auto vectors = of.vectors.values();
  const auto values = of.values.values();
  double worst = 0;
  for (std::int64_t v = 0; v < of.n; ++v) {
    double square = 0;
    for (std::int64_t row = 0; row < of.n; ++row) {
      const double wanted = static_cast<double>(values[static_cast<std::size_t>(v)]) *
                            static_cast<double>(vectors[static_cast<std::size_t>(v * of.n + row)]);
      const double away = inner(x, row, vectors, v, of.n) - wanted;
      square += away * away;
    }
    worst = std::isfinite(square) ? std::max(worst, std::sqrt(square))
                                  : std::numeric_limits<double>::infinity();
  }
  return worst / std::max(1e-30, std::abs(static_cast<double>(values.back())));
}

}  // namespace

TEST_CASE("eigenvectors are unit vectors, across each other, in the order of their eigenvalues") {
  for_each_backend([](Kernels& kernels) {
    for (const auto n : sides()) {
      // Matrices of full rank, and of half: then many eigenvalues are zero.
      for (const auto rank : {n + 3, (n + 1) / 2}) {
        INFO(kernels.name() << ", side " << n << ", rank " << rank);
        Decomposed of(n);
        of.make_symmetric(rank);
        const auto before = of.x.values();
        of.find_eigenvectors(kernels);
        CHECK(of.vectors.written_exactly());
        CHECK(of.values.written_exactly());
        CHECK(of.x.values() == before);
        const auto values = of.values.values();
        CHECK(std::is_sorted(values.begin(), values.end()));
        CHECK(away_from_orthonormal(of.vectors.values(), n) < 1e-5);
        CHECK(residual(of) < 1e-5);
      }
    }
  });
}

TEST_CASE("eigenvectors of a wide matrix are right to their own eigenvalue, however small") {
  for_each_backend([](Kernels& kernels) {
    for (const std::int64_t n : {2, 16, 33}) {
      INFO(kernels.name() << ", side " << n);
      // Rows of lengths from 1 to 1e-4: eigenvalues from 1 to 1e-8 or so.
      TestTensor rows(DType::f32, {n, n});
      TestTensor high(DType::f32, {n, n});
      TestTensor low(DType::f32, {n, n});
      rows.randomise(3);
      for (std::int64_t at = 0; at < n * n; ++at) {
        const auto row = at / n;
        // Far enough from any that has no inverse.
        if (at % n == row) rows.f32_at(at) += 3 * std::sqrt(static_cast<float>(n));
        rows.f32_at(at) *=
            std::pow(10.0F, -4.0F * static_cast<float>(row) / static_cast<float>(n - 1));
      }
      high.set(std::vector<float>(static_cast<std::size_t>(n * n), 0.0F));
      low.set(high.values());
      const WideMatrix factor{high, low};
      kernels.issue(SymmetricRankUpdate{rows, factor, 0.0F});
      TestTensor vectors(DType::f32, {n, n});
      TestTensor values(DType::f32, {n});
      TestTensor images(DType::f32, {n, n});
      auto memory =
          Arena::host(Purpose::workspace, static_cast<std::size_t>(24 * n * n + 256 * n + 512));
      const DecompositionWorkspace workspace(memory, n, DecompositionWorkspace::Numbers::fp64);
      kernels.issue(SymmetricEigenvectors{factor, vectors, values, workspace});
      CHECK(vectors.written_exactly());
      CHECK(values.written_exactly());
      CHECK(away_from_orthonormal(vectors.values(), n) < 1e-6);
      kernels.issue(WideProduct{vectors, factor, images});
      // A vector's own rounding, 6e-8, takes parts of the largest eigenvalue into its image.
      const auto image = images.values();
      const auto vector = vectors.values();
      const auto value = values.values();
      double worst = 0;
      for (std::int64_t v = 0; v < n; ++v) {
        worst =
            std::max(worst, std::abs(inner(image, v, vector, v, n) /
                                         static_cast<double>(value[static_cast<std::size_t>(v)]) -
                                     1));
      }
      CHECK(worst < 1e-2);
    }
  });
}

TEST_CASE("eigenvalues are those of matrices worked by hand") {
  for_each_backend([](Kernels& kernels) {
    Decomposed of(2);
    of.x.set({2, 1, 1, 2});
    of.find_eigenvectors(kernels);
    CHECK(relative_error(of.values.values(), {1, 3}) < 1e-6);
    const auto vectors = of.vectors.values();
    CHECK(vectors[0] == Approx(-vectors[1]));
    CHECK(vectors[2] == Approx(vectors[3]));
    // Any basis of nothing will do.
    of.x.set({0, 0, 0, 0});
    of.find_eigenvectors(kernels);
    CHECK(of.values.values() == std::vector<float>{0, 0});
    CHECK(away_from_orthonormal(of.vectors.values(), 2) < 1e-6);
  });
}

TEST_CASE("rows become orthonormal, the first of them spanning what the first did") {
  for_each_backend([](Kernels& kernels) {
    for (const auto n : sides()) {
      INFO(kernels.name() << ", side " << n);
      Decomposed of(n);
      of.x.randomise(5);
      const auto before = of.x.values();
      of.orthonormalise(kernels);
      const auto after = of.x.values();
      CHECK(away_from_orthonormal(after, n) < 1e-5);
      // The rest of a former row across the new ones up to its own is rounding.
      double worst = 0;
      for (std::int64_t row = 0; row < n; ++row) {
        double rest = inner(before, row, before, row, n);
        for (std::int64_t own = 0; own <= row; ++own) {
          const double part = inner(before, row, after, own, n);
          rest -= part * part;
        }
        worst = std::max(worst, std::abs(rest) / inner(before, row, before, row, n));
      }
      CHECK(worst < 1e-5);
    }
  });
}

TEST_CASE("rows that depend on each other become orthonormal, too") {
  for_each_backend([](Kernels& kernels) {
    Decomposed of(3);
    of.x.set({3, 4, 0, 6, 8, 0, 0, 0, 0});
    of.orthonormalise(kernels);
    const auto rows = of.x.values();
    CHECK(away_from_orthonormal(rows, 3) < 1e-6);
    CHECK(std::abs(rows[0]) == Approx(0.6));
    CHECK(std::abs(rows[1]) == Approx(0.8));
  });
}
