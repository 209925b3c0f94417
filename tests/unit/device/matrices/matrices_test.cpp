// SPDX-License-Identifier: Apache-2.0
// Operations of rules that update whole matrices.
#include "unit/device/backends.hpp"
#include "unit/device/compare.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

struct Batch {
  std::int64_t count;
  std::int64_t rows;
  std::int64_t columns;
};

/// The last ones are cut into several tiles.
std::vector<Batch> batches() {
  std::vector<Batch> shapes{{1, 1, 1}, {1, 1, 9}, {2, 3, 5}, {3, 7, 7}, {2, 33, 65}};
  if (take_large_shapes()) shapes.insert(shapes.end(), {{2, 300, 420}, {1, 640, 1000}});
  return shapes;
}

}  // namespace

TEST_CASE("matrices are divided by their norms") {
  for_each_backend([](Kernels& kernels) {
    for (const auto dtype : {DType::f32, DType::bf16}) {
      TestTensor x(DType::f32, {3, 1, 2});
      TestTensor y(dtype, {3, 1, 2});
      x.set({3, 4, 0, 0, 0, -0.5F});
      kernels.issue(NormaliseMatrices{x, y, 0.5F});
      CHECK(y.written_exactly());
      const std::vector<float> expected{3 / 5.5F, 4 / 5.5F, 0, 0, 0, -0.5F};
      CHECK(relative_error(y.values(), expected) < (dtype == DType::f32 ? 1e-6 : 1e-2));
    }
  });
}

TEST_CASE("each matrix of a batch has its norm") {
  for_each_backend([](Kernels& kernels) {
    TestTensor x(DType::f32, {3, 1, 2});
    TestTensor norms(DType::f32, {3});
    x.set({3, 4, 0, 0, 0, -0.5F});
    kernels.issue(MatrixNorms{x, norms});
    CHECK(norms.written_exactly());
    CHECK(norms.values() == std::vector<float>{5, 0, 0.5F});
    // Longer than a block's part.
    TestTensor ones(DType::f32, {2, 200, 200});
    TestTensor two(DType::f32, {2});
    auto values = std::vector<float>(80000, 1.0F);
    std::fill(values.begin() + 40000, values.end(), 0.5F);
    ones.set(values);
    kernels.issue(MatrixNorms{ones, two});
    CHECK(two.values() == std::vector<float>{200, 100});
  });
}

TEST_CASE("rows are multiplied by their factors, and in their own place") {
  for_each_backend([](Kernels& kernels) {
    for (const std::int64_t columns : {1, 3, 8, 65}) {
      TestTensor x(DType::f32, {3, columns});
      TestTensor y(DType::f32, {3, columns});
      TestTensor factors(DType::f32, {3});
      x.randomise(1);
      factors.set({2, 0, -0.25F});
      kernels.issue(ScaleRows{x, factors, y});
      CHECK(y.written_exactly());
      auto expected = x.values();
      for (std::size_t at = 0; at < expected.size(); ++at) {
        expected[at] *= factors.values()[at / static_cast<std::size_t>(columns)];
      }
      CHECK(y.values() == expected);
      kernels.issue(ScaleRows{x, factors, x});
      CHECK(x.values() == expected);
    }
  });
}

TEST_CASE("inner products of rows come as doubles") {
  for_each_backend([](Kernels& kernels) {
    for (const std::int64_t columns : {1, 3, 700}) {
      TestTensor x(DType::f32, {40, columns});
      TestTensor y(DType::f32, {40, columns});
      TestTensor sums(DType::i32, {40, 2});
      x.randomise(1);
      y.randomise(2);
      kernels.issue(RowProducts{x, y, sums});
      std::vector<double> found(40);
      std::memcpy(found.data(), sums.view().raw(), sums.view().byte_count());
      const auto a = x.values();
      const auto b = y.values();
      double worst = 0;
      for (std::size_t row = 0; row < 40; ++row) {
        double sum = 0;
        const auto width = static_cast<std::size_t>(columns);
        for (auto at = row * width; at < (row + 1) * width; ++at) {
          sum += static_cast<double>(a[at] * b[at]);
        }
        worst = std::max(worst, std::abs(found[row] - sum));
      }
      // In any order, but not in fp32.
      CHECK(worst < 1e-12);
    }
  });
}

TEST_CASE("each matrix of a batch is transposed") {
  for_each_backend([](Kernels& kernels) {
    for (const auto dtype : {DType::f32, DType::bf16}) {
      for (const auto& [count, rows, columns] : {Batch{2, 2, 3}, Batch{3, 41, 35}}) {
        TestTensor x(dtype, {count, rows, columns});
        TestTensor y(dtype, {count, columns, rows});
        x.randomise(1);
        kernels.issue(TransposeMatrices{x, y});
        CHECK(y.written_exactly());
        const auto from = x.values();
        const auto to = y.values();
        std::int64_t wrong = 0;
        for (std::int64_t at = 0; at < count * rows * columns; ++at) {
          const auto matrix = at / (rows * columns);
          const auto row = at / columns % rows;
          const auto place = (matrix * columns + at % columns) * rows + row;
          wrong +=
              from[static_cast<std::size_t>(at)] == to[static_cast<std::size_t>(place)] ? 0 : 1;
        }
        CHECK(wrong == 0);
      }
    }
  });
}

TEST_CASE("the mean of gradients and the step beyond it are those of the rule") {
  for_each_backend([](Kernels& kernels) {
    TestTensor gradient(DType::f32, {37});
    TestTensor momentum(DType::f32, {37});
    TestTensor update(DType::f32, {37});
    gradient.set(std::vector<float>(37, 4.0F));
    momentum.set(std::vector<float>(37, 1.0F));
    using Step = MeanMomentum::Step;
    kernels.issue(MeanMomentum{0.75F, Step::plain, 0.5F, gradient, momentum, update});
    CHECK(momentum.values() == std::vector<float>(37, 1.25F));
    CHECK(update.values() == std::vector<float>(37, 1.25F));
    kernels.issue(MeanMomentum{0.75F, Step::nesterov, 0.5F, gradient, momentum, update});
    CHECK(momentum.values() == std::vector<float>(37, 1.4375F));
    CHECK(update.values() == std::vector<float>(37, 2.0F + 0.75F * (1.4375F - 2.0F)));
    CHECK(update.written_exactly());
  });
}

TEST_CASE("products of batches of matrices are the reference's") {
  const auto reference = make_reference_kernels();
  for (const auto dtype : {DType::f32, DType::bf16}) {
    for (const auto& batch : batches()) {
      const auto [count, rows, columns] = batch;
      INFO(count << " x " << rows << " x " << columns);
      // Terms of one sign on the diagonal: a matrix of one element would have only what cancels.
      const float scale = 1.0F / static_cast<float>(columns);
      for (const auto triangles : {Triangles::both, Triangles::lower}) {
        compare(dtype, [&](Kernels& kernels) {
          const auto& [matrices, n, m] = batch;
          TestTensor x(dtype, {matrices, n, m});
          TestTensor a(dtype, {matrices, n, n});
          TestTensor b(dtype, {matrices, n, n});
          TestTensor c(dtype, {matrices, n, n});
          TestTensor square(dtype, {matrices, n, n});
          TestTensor z(dtype, {matrices, n, m});
          TestTensor gram(dtype, {matrices, n, n});
          x.randomise(1);
          // The same operands for all: what is compared is one product each.
          reference->issue(SymmetricProduct{x, {}, gram, scale});
          kernels.issue(SymmetricProduct{x, {}, a, scale, 0.0F, triangles});
          kernels.issue(SymmetricProduct{gram, gram, b, 2.0F, 0.75F, triangles});
          kernels.issue(AddProduct{gram, x, z, 1.5F});
          // A polynomial of gram: the two commute.
          reference->issue(SymmetricProduct{gram, gram, square, 0.5F, 1.0F});
          kernels.issue(SymmetricProduct{square, gram, c, 1.0F, 0.5F, triangles, gram});
          return all({a, b, c, z});
        });
      }
    }
  }
}

TEST_CASE("a matrix has the same bits alone and in a batch") {
  for_each_backend([](Kernels& kernels) {
    for (const auto dtype : {DType::f32, DType::bf16}) {
      const std::int64_t n = 19;
      const std::int64_t m = 45;
      TestTensor x(dtype, {3, n, m});
      TestTensor y(dtype, {3, n, n});
      TestTensor alone(dtype, {1, n, n});
      TestTensor sum(dtype, {3, n, n});
      TestTensor z(dtype, {3, n, m});
      TestTensor sum_alone(dtype, {1, n, n});
      TestTensor z_alone(dtype, {1, n, m});
      x.randomise(1);
      const auto last = [](const TestTensor& batch) { return batch.view().slice(0, 2, 1); };
      const auto is_alike = [](const TestTensor& batch, const TestTensor& one) {
        const auto all = batch.values();
        const auto own = one.values();
        return std::equal(own.begin(), own.end(), all.end() - std::ssize(own));
      };
      kernels.issue(SymmetricProduct{x, {}, y});
      kernels.issue(SymmetricProduct{last(x), {}, alone});
      CHECK(is_alike(y, alone));
      kernels.issue(SymmetricProduct{y, y, sum, 0.5F, 2.0F});
      kernels.issue(SymmetricProduct{last(y), last(y), sum_alone, 0.5F, 2.0F});
      CHECK(is_alike(sum, sum_alone));
      kernels.issue(AddProduct{y, x, z, 1.5F});
      kernels.issue(AddProduct{last(y), last(x), z_alone, 1.5F});
      CHECK(is_alike(z, z_alone));
    }
  });
}
