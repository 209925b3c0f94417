// SPDX-License-Identifier: Apache-2.0
// Products of f32 with sums in fp64.
#include "unit/device/backends.hpp"
#include "unit/device/compare.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

struct Shape {
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t columns;
};

/// Several tiles and parts of sums, whole and not.
std::vector<Shape> shapes() {
  std::vector<Shape> all{{1, 1, 1}, {3, 5, 2}, {17, 33, 9}, {70, 20, 66}};
  if (take_large_shapes()) all.insert(all.end(), {{64, 128, 128}, {130, 257, 193}});
  return all;
}

/// A wide matrix, and its numbers.
struct Wide {
  Wide(std::int64_t rows, std::int64_t columns, unsigned seed)
      : high(DType::f32, {rows, columns}), low(DType::f32, {rows, columns}) {
    high.randomise(seed);
    low.randomise(seed + 1);
    auto rests = low.values();
    const auto heads = high.values();
    for (std::size_t at = 0; at < rests.size(); ++at) rests[at] *= 0x1p-26F * std::abs(heads[at]);
    low.set(rests);
  }
  WideMatrix view() const { return {high, low}; }
  std::vector<double> values() const {
    const auto rests = low.values();
    const auto heads = high.values();
    std::vector<double> sums(heads.begin(), heads.end());
    for (std::size_t at = 0; at < sums.size(); ++at) sums[at] += static_cast<double>(rests[at]);
    return sums;
  }

  TestTensor high;
  TestTensor low;
};

double largest_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t at = 0; at < a.size(); ++at)
    largest = std::max(largest, std::abs(a[at] - b[at]));
  return largest;
}

/// sum over k of left(k, i) * right(k, j).
template <typename Left, typename Right>
std::vector<double> products(const Shape& shape, const Left& left, const Right& right) {
  std::vector<double> sums;
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    for (std::int64_t j = 0; j < shape.columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < shape.inner; ++k) sum += left(k, i) * right(k, j);
      sums.push_back(sum);
    }
  }
  return sums;
}

}  // namespace

TEST_CASE("a symmetric rank update keeps twice the bits of a float") {
  for_each_backend([](Kernels& kernels) {
    for (const auto& shape : shapes()) {
      const auto n = shape.rows;
      const auto inner = shape.inner;
      TestTensor x(DType::f32, {inner, n});
      x.randomise(1);
      Wide sum(n, n, 2);
      // The sum that it adds to is symmetric.
      kernels.issue(SymmetricRankUpdate{x, sum.view(), 0.0F});
      const auto before = sum.values();
      const auto from = x.values();
      const auto element = [&](std::int64_t k, std::int64_t i) {
        return static_cast<double>(from[static_cast<std::size_t>(k * n + i)]);
      };
      const auto squares = products({n, inner, n}, element, element);
      const auto bound = 1e-13 * static_cast<double>(inner);
      CHECK(largest_distance(before, squares) < bound);
      kernels.issue(SymmetricRankUpdate{x, sum.view(), 0.75F});
      CHECK(sum.high.written_exactly());
      CHECK(sum.low.written_exactly());
      auto expected = before;
      for (std::size_t at = 0; at < expected.size(); ++at) {
        expected[at] = 0.75 * expected[at] + 0.25 * squares[at];
      }
      const auto after = sum.values();
      CHECK(largest_distance(after, expected) < bound);
      std::int64_t wrong = 0;
      for (std::int64_t at = 0; at < n * n; ++at) {
        const auto mirrored = at % n * n + at / n;
        const auto place = static_cast<std::size_t>(at);
        wrong += after[place] == after[static_cast<std::size_t>(mirrored)] ? 0 : 1;
        wrong += sum.high.values()[place] == static_cast<float>(after[place]) ? 0 : 1;
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("a product with a wide matrix keeps what fp32 cancels") {
  for_each_backend([](Kernels& kernels) {
    for (const auto& shape : shapes()) {
      TestTensor x(DType::f32, {shape.rows, shape.inner});
      TestTensor y(DType::f32, {shape.rows, shape.columns});
      x.randomise(1);
      const Wide s(shape.inner, shape.columns, 2);
      kernels.issue(WideProduct{x, s.view(), y});
      CHECK(y.written_exactly());
      const auto from = x.values();
      const auto by = s.values();
      const auto expected = products(
          shape,
          [&](auto k, auto i) {
            return static_cast<double>(from[static_cast<std::size_t>(i * shape.inner + k)]);
          },
          [&](auto k, auto j) { return by[static_cast<std::size_t>(k * shape.columns + j)]; });
      const auto found = y.values();
      // Rounded once, whatever has cancelled.
      double worst = 0;
      for (std::size_t at = 0; at < found.size(); ++at) {
        const auto distance = std::abs(static_cast<double>(found[at]) - expected[at]);
        worst = std::max(worst, (distance - 1e-12) / std::abs(expected[at]));
      }
      CHECK(worst < 0x1p-23);
    }
    // 1 + 2^-30 less 1.
    TestTensor x(DType::f32, {1, 2});
    TestTensor y(DType::f32, {1, 1});
    Wide s(2, 1, 1);
    x.set({1, -1});
    s.high.set({1, 1});
    s.low.set({0x1p-30F, 0});
    kernels.issue(WideProduct{x, s.view(), y});
    CHECK(y.values() == std::vector<float>{0x1p-30F});
  });
}
