// SPDX-License-Identifier: Apache-2.0
// Products of FP8 copies, against their definition in double. On a GPU the library computes them.
#include "trireme/device/float8.hpp"

#include "unit/device/backends.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

struct Operand {
  Operand(Kernels& kernels, std::int64_t rows, std::int64_t width, std::uint64_t stream)
      : numbers(DType::bf16, {rows, width}), codes(DType::e4m3, {rows, width}) {
    numbers.randomise(stream, stream == 1 ? 3.0F : 0.02F);
    kernels.issue(LargestMagnitude{numbers, magnitude});
    kernels.issue(Quantise{numbers, magnitude, view()});
  }
  Quantised view() const { return {codes, unscale}; }
  double at(std::int64_t index) const {
    const auto* code = codes.view().e4m3() + index;
    return static_cast<double>(to_float(*code)) * static_cast<double>(unscale.at(0));
  }

  TestTensor numbers;
  TestTensor codes;
  TestTensor magnitude{DType::f32, {1}};
  TestTensor unscale{DType::f32, {1}};
};

struct GemmShape {
  std::int64_t rows;
  std::int64_t in;
  std::int64_t out;
};

}  // namespace

TEST_CASE("a product of FP8 copies is the sum of the products of what their codes stand for") {
  // Inner dimensions and results of multiples of 16, as GPUs want them; any number of rows.
  const auto shape = GENERATE(GemmShape{1, 16, 16}, GemmShape{7, 48, 80}, GemmShape{33, 256, 32},
                              GemmShape{64, 128, 144}, GemmShape{3, 1040, 16});
  CAPTURE(shape.rows, shape.in, shape.out);
  for_each_backend([&](Kernels& kernels) {
    const Operand x(kernels, shape.rows, shape.in, 1);
    const Operand w(kernels, shape.out, shape.in, 2);
    for (const bool with_bias : {false, true}) {
      TestTensor bias(DType::bf16, {shape.out});
      TestTensor y(DType::bf16, {shape.rows, shape.out});
      bias.randomise(3);
      kernels.issue(
          LinearForwardQuantised{x.view(), w.view(), with_bias ? bias.view() : Tensor(), y});
      CHECK(y.written_exactly());
      std::vector<float> expected;
      for (std::int64_t row = 0; row < shape.rows; ++row) {
        for (std::int64_t column = 0; column < shape.out; ++column) {
          double sum = with_bias ? static_cast<double>(bias.at(column)) : 0.0;
          for (std::int64_t k = 0; k < shape.in; ++k) {
            sum += x.at(row * shape.in + k) * w.at(column * shape.in + k);
          }
          expected.push_back(static_cast<float>(sum));
        }
      }
      // bf16 rounds a result by up to 2^-9 of it; sums in fp32 add next to nothing to that.
      CHECK(relative_error(y.values(), expected) < 4e-3);
    }
  });
}

TEST_CASE("a product of FP8 copies is near the product of the numbers, but not it") {
  for_each_backend([](Kernels& kernels) {
    const Operand x(kernels, 32, 256, 1);
    const Operand w(kernels, 64, 256, 2);
    TestTensor y(DType::bf16, {32, 64});
    TestTensor plain(DType::bf16, {32, 64});
    kernels.issue(LinearForwardQuantised{x.view(), w.view(), {}, y});
    kernels.issue(LinearForward{x.numbers, w.numbers, {}, plain});
    // Each factor is off by up to 2^-4 of itself, 2^-4 / sqrt(3) / 1.4 or about 2.6 % in the mean
    // over a binade, two factors 3.7 %, whose errors in a sum are independent: as large beside it.
    const auto away = relative_error(y.values(), plain.values());
    CHECK(away < 0.05);
    CHECK(away > 0.01);
  });
}
