// SPDX-License-Identifier: Apache-2.0
#include "unit/device/backends.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

constexpr std::int64_t rows = 5;
constexpr std::int64_t columns = 67;
const std::vector<std::int32_t> target_ids{0, 66, 40, -1, 7};

/// Log of the sum of exponentials of each row, from the statistics of vocabulary parts.
std::vector<float> lse_of(const std::vector<std::vector<float>>& parts) {
  std::vector<float> lse;
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    float largest = -INFINITY;
    for (const auto& stats : parts) largest = std::max(largest, stats[row]);
    double sum = 0;
    for (const auto& stats : parts) {
      sum += static_cast<double>(stats[rows + row]) *
             std::exp(static_cast<double>(stats[row] - largest));
    }
    lse.push_back(static_cast<float>(static_cast<double>(largest) + std::log(sum)));
  }
  return lse;
}

}  // namespace

TEST_CASE("cross-entropy of a row worked by hand") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  for_each_backend([&](Kernels& kernels) {
    TestTensor logits(dtype, {3, 3}, Spread::strided);
    TestTensor targets(DType::i32, {3});
    TestTensor stats(DType::f32, {3, 3});
    TestTensor lse(DType::f32, {3});
    logits.set({0, 0, 0, 5, 4, 5, 1, 2, 3});
    targets.set_integers({1, 2, -100});
    kernels.issue(CrossEntropyStats{logits, targets, 0, stats});
    CHECK(stats.written_exactly());
    const auto e = std::exp(-1.0);
    const std::vector<double> expected{0, 5, 3, 3, 2 + e, 1 + e + e * e, 0, 5, 0};
    for (std::size_t i = 0; i < 9; ++i) {
      CHECK(static_cast<double>(stats.values()[i]) == Approx(expected[i]).margin(1e-6));
    }
    lse.set({std::log(3.0F), static_cast<float>(5 + std::log(2 + e)), 0});
    kernels.issue(CrossEntropyGradient{logits, targets, 0, lse, 3.0F});
    CHECK(logits.untouched_outside());
    const std::vector<double> gradient{1, -2, 1, 3 / (2 + e), 3 * e / (2 + e), 3 / (2 + e) - 3,
                                       0, 0,  0};
    for (std::size_t i = 0; i < 9; ++i) {
      CHECK(static_cast<double>(logits.values()[i]) ==
            Approx(gradient[i]).epsilon(dtype == DType::f32 ? 1e-6 : 4e-3).margin(1e-7));
    }
  });
}

TEST_CASE("cross-entropy over a split vocabulary equals the whole") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  for_each_backend([&](Kernels& kernels) {
    TestTensor logits(dtype, {rows, columns}, Spread::strided);
    TestTensor targets(DType::i32, {rows});
    logits.randomise(1, 4.0F);
    targets.set_integers(target_ids);
    TestTensor whole(DType::f32, {3, rows});
    TestTensor low(DType::f32, {3, rows});
    TestTensor high(DType::f32, {3, rows});
    const auto left = logits.view().slice(1, 0, 40);
    const auto right = logits.view().slice(1, 40, 27);
    kernels.issue(CrossEntropyStats{logits, targets, 0, whole});
    kernels.issue(CrossEntropyStats{left, targets, 0, low});
    kernels.issue(CrossEntropyStats{right, targets, 40, high});
    const auto lse = lse_of({whole.values()});
    CHECK(relative_error(lse_of({low.values(), high.values()}), lse) < 1e-6);
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
      CHECK(low.values()[2 * rows + row] + high.values()[2 * rows + row] ==
            whole.values()[2 * rows + row]);
    }

    TestTensor copy(dtype, {rows, columns});
    TestTensor lse_tensor(DType::f32, {rows});
    lse_tensor.set(lse);
    kernels.issue(Copy{logits, copy});
    kernels.issue(CrossEntropyGradient{copy, targets, 0, lse_tensor, 0.25F});
    kernels.issue(CrossEntropyGradient{left, targets, 0, lse_tensor, 0.25F});
    kernels.issue(CrossEntropyGradient{right, targets, 40, lse_tensor, 0.25F});
    CHECK(relative_error(logits.values(), copy.values()) < 1e-6);
    CHECK(logits.untouched_outside());
  });
}

TEST_CASE("a factor of cross-entropy's gradient is read from memory when it runs") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  for_each_backend([&](Kernels& kernels) {
    TestTensor logits(dtype, {rows, columns});
    TestTensor targets(DType::i32, {rows});
    TestTensor lse(DType::f32, {rows});
    TestTensor by_value(dtype, {rows, columns});
    TestTensor factor(DType::f32, {1});
    logits.randomise(1, 2.0F);
    targets.set_integers(target_ids);
    lse.set(std::vector<float>(static_cast<std::size_t>(rows), 5.0F));
    kernels.issue(Copy{logits, by_value});
    const CrossEntropyGradient scaled{
        .logits = logits, .targets = targets, .lse = lse, .scale = 1.0F, .factor = factor};
    factor.set({0.375F});
    kernels.issue(scaled);
    kernels.issue(CrossEntropyGradient{by_value, targets, 0, lse, 0.375F});
    CHECK(logits.values() == by_value.values());
  });
}

TEST_CASE("the gradient of cross-entropy agrees with finite differences") {
  for_each_backend([](Kernels& kernels) {
    TestTensor logits(DType::f32, {rows, columns});
    TestTensor targets(DType::i32, {rows});
    TestTensor stats(DType::f32, {3, rows});
    TestTensor lse(DType::f32, {rows});
    TestTensor gradient(DType::f32, {rows, columns});
    logits.randomise(1, 2.0F);
    targets.set_integers(target_ids);
    const auto loss = [&] {
      kernels.issue(CrossEntropyStats{logits, targets, 0, stats});
      const auto sums = lse_of({stats.values()});
      double total = 0;
      for (std::size_t row = 0; row < sums.size(); ++row) {
        if (target_ids[row] < 0) continue;
        total += static_cast<double>(sums[row] - stats.values()[2 * rows + row]);
      }
      return total * 0.2;
    };
    loss();
    lse.set(lse_of({stats.values()}));
    kernels.issue(Copy{logits, gradient});
    kernels.issue(CrossEntropyGradient{gradient, targets, 0, lse, 0.2F});
    CHECK(gradient_error(logits, gradient.values(), loss) < 1e-3);
  });
}

TEST_CASE("logits of any size give finite statistics, and a NaN shows") {
  for_each_backend([](Kernels& kernels) {
    TestTensor logits(DType::f32, {2, 3000});
    TestTensor targets(DType::i32, {2});
    TestTensor stats(DType::f32, {3, 2});
    std::vector<float> values(6000, -1e30F);
    values[2999] = 1e30F;
    values[4000] = NAN;
    logits.set(values);
    targets.set_integers({0, 0});
    kernels.issue(CrossEntropyStats{logits, targets, 0, stats});
    CHECK(stats.at(0) == 1e30F);
    CHECK(stats.at(2) == 1.0F);
    CHECK(std::isnan(stats.at(3)));
  });
}

TEST_CASE("cross-entropy takes rows that begin with minus infinity") {
  for_each_backend([](Kernels& kernels) {
    TestTensor logits(DType::f32, {1, 5000});
    TestTensor targets(DType::i32, {1});
    TestTensor stats(DType::f32, {3, 1});
    std::vector<float> values(5000, -INFINITY);
    values[4000] = -7.0F;
    values[4999] = -7.0F;
    logits.set(values);
    targets.set_integers({4000});
    kernels.issue(CrossEntropyStats{logits, targets, 0, stats});
    CHECK(stats.values() == std::vector<float>{-7, 2, -7});
  });
}
