// SPDX-License-Identifier: Apache-2.0
// Products of batches of matrices by the cuda backend's own code, over the stand-in of cuBLASLt.
#include "simulated_gpu/watched_gpu.hpp"
#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

/// A batch of matrices, and the products that Newton-Schulz asks for.
class Matrices {
 public:
  Matrices(DType type, std::int64_t count, std::int64_t n, std::int64_t m)
      : x(type, {count, n, m}),
        square(type, {count, n, n}),
        sum(type, {count, n, n}),
        z(type, {count, n, m}) {
    x.randomise(1, 0.3F);
  }
  void run(Kernels& kernels) const { run(kernels, x.view().dim(0)); }
  /// Run of the first matrices alone.
  void run(Kernels& kernels, std::int64_t count) const {
    const auto some = [count](const TestTensor& all) { return all.view().slice(0, 0, count); };
    kernels.issue(SymmetricProduct{some(x), {}, some(square)});
    kernels.issue(SymmetricProduct{some(square), some(square), some(sum), 0.5F, 1.5F});
    kernels.issue(AddProduct{some(square), some(x), some(z), 2.0F});
  }
  std::vector<std::vector<float>> results() const {
    return {square.values(), sum.values(), z.values()};
  }
  std::vector<GemmCall> calls(std::int64_t count) const {
    std::vector<GemmCall> all;
    run(*make_gemm_collecting_kernels(all), count);
    return all;
  }

  TestTensor x, square, sum, z;
};

}  // namespace

TEST_CASE("a batch of matrices is one product, with its factors and what is added") {
  for (const auto type : {DType::f32, DType::bf16}) {
    const Watch watch;
    Gpu gpu;
    Matrices batch(type, 3, 24, 40);
    Matrices wanted(type, 3, 24, 40);
    batch.run(gpu.kernels());
    wanted.run(*make_reference_kernels());
    CHECK(watch.all() == 3);
    CHECK(watch.batches() == 3);
    for (std::size_t at = 0; at < 3; ++at) {
      CHECK(relative_error(batch.results()[at], wanted.results()[at]) <
            (type == DType::f32 ? 1e-5 : 1e-2));
    }
    watch.check_use();
  }
}

TEST_CASE("an algorithm that takes no batch multiplies its matrices one by one, to the same bits") {
  const Watch watch;
  Gpu gpu;
  Matrices batch(DType::bf16, 3, 24, 40);
  batch.run(gpu.kernels());
  controls().most_matrices = 1;
  Gpu other;
  Matrices apart(DType::bf16, 3, 24, 40);
  const Watch one_by_one;
  apart.run(other.kernels());
  CHECK(one_by_one.all() == 9);
  CHECK(one_by_one.batches() == 0);
  CHECK(apart.results() == batch.results());
  watch.check_use();
}

TEST_CASE("products of matrices are timed for one matrix, and a batch of any length takes that") {
  const Watch watch;
  Gpu gpu;
  Matrices batch(DType::bf16, 3, 24, 40);
  CHECK(gpu.tuning().choose(batch.calls(3)) == 3);
  CHECK(gpu.tuning().choose(batch.calls(1)) == 0);
  CHECK(watch.slow() > 0);
  const Watch chosen;
  batch.run(gpu.kernels());
  CHECK(chosen.slow() == 0);
  CHECK(chosen.batches() == 3);
  // Sums are not split: halves would take workspace for each matrix.
  CHECK(watch.split() == 0);
  watch.check_use();
}

TEST_CASE("of a large symmetric matrix the lower triangle is computed, and mirrored") {
  constexpr std::int64_t n = 4096;
  constexpr std::int64_t few = 4;
  const Watch watch;
  Gpu gpu;
  TestTensor x(DType::f32, {1, n, few});
  TestTensor y(DType::f32, {1, n, n});
  TestTensor wanted(DType::f32, {1, n, n});
  x.randomise(1);
  gpu.kernels().issue(SymmetricProduct{x, {}, y, 2.0F});
  CHECK(watch.flops() == 2 * n * n * few * 5 / 8);
  // One square of 2048, two of 1024, four on the diagonal.
  CHECK(watch.all() == 3);
  make_reference_kernels()->issue(SymmetricProduct{x, {}, wanted, 2.0F});
  const auto found = y.values();
  CHECK(relative_error(found, wanted.values()) < 1e-5);
  std::int64_t different = 0;
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t column = 0; column < row; ++column) {
      different += found[row * n + column] == found[column * n + row] ? 0 : 1;
    }
  }
  CHECK(different == 0);
  watch.check_use();
}
