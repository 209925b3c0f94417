// SPDX-License-Identifier: Apache-2.0
#include "unit/device/backends.hpp"

#include <catch2/catch.hpp>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

struct Shape {
  std::int64_t rows;
  std::int64_t in;
  std::int64_t out;
};
const Shape shapes[] = {{1, 1, 1}, {3, 5, 7}, {17, 300, 33}, {64, 64, 64}, {2, 129, 95}};

double tolerance(DType dtype) {
  return dtype == DType::f32 ? 1e-5 : 1e-2;
}

/// sum over k of a[i][k] * b[j][k], in double.
std::vector<float> naive(const std::vector<float>& a, const std::vector<float>& b,
                         std::int64_t inner) {
  const auto k_count = static_cast<std::size_t>(inner);
  std::vector<float> product;
  for (std::size_t i = 0; i < a.size(); i += k_count) {
    for (std::size_t j = 0; j < b.size(); j += k_count) {
      double sum = 0;
      for (std::size_t k = 0; k < k_count; ++k) {
        sum += static_cast<double>(a[i + k]) * static_cast<double>(b[j + k]);
      }
      product.push_back(static_cast<float>(sum));
    }
  }
  return product;
}

std::vector<float> transposed(const std::vector<float>& a, std::int64_t columns) {
  const auto width = static_cast<std::size_t>(columns);
  std::vector<float> result;
  for (std::size_t c = 0; c < width; ++c) {
    for (std::size_t i = c; i < a.size(); i += width) result.push_back(a[i]);
  }
  return result;
}

}  // namespace

TEST_CASE("a gelu on the way is the layer and then the gelu, forward and backward") {
  const auto reference = make_reference_kernels();
  for_each_backend([&](Kernels& kernels) {
    for (const auto dtype : {DType::f32, DType::bf16}) {
      for (const auto& shape : shapes) {
        for (const bool has_bias : {true, false}) {
          INFO(shape.rows << " x " << shape.in << " x " << shape.out << " " << name(dtype));
          TestTensor x(dtype, {shape.rows, shape.in});
          TestTensor w(dtype, {shape.out, shape.in});
          TestTensor bias(dtype, {shape.out});
          TestTensor wide(dtype, {shape.rows, shape.out});
          TestTensor y(dtype, {shape.rows, shape.out});
          TestTensor wanted_wide(dtype, {shape.rows, shape.out});
          TestTensor wanted(dtype, {shape.rows, shape.out});
          x.randomise(1);
          w.randomise(2, 0.1F);
          bias.randomise(3);
          const Tensor its_bias = has_bias ? bias.view() : Tensor();
          kernels.issue(LinearGeluForward{x, w, its_bias, wide, y});
          reference->issue(LinearForward{x, w, its_bias, wanted_wide});
          reference->issue(GeluForward{wanted_wide, wanted});
          CHECK(wide.written_exactly());
          CHECK(y.written_exactly());
          CHECK(relative_error(wide.values(), wanted_wide.values()) < tolerance(dtype));
          CHECK(relative_error(y.values(), wanted.values()) < tolerance(dtype));

          // The down projection's gradient, through its own weight to what the gelu took.
          TestTensor dy(dtype, {shape.rows, shape.in});
          TestTensor down(dtype, {shape.in, shape.out});
          TestTensor d_wide(dtype, {shape.rows, shape.out});
          TestTensor wanted_d(dtype, {shape.rows, shape.out});
          dy.randomise(4);
          down.randomise(5, 0.1F);
          kernels.issue(LinearBackwardGelu{dy, down, wanted_wide, d_wide});
          reference->issue(LinearBackwardInput{dy, down, wanted_d});
          reference->issue(GeluBackward{wanted_d, wanted_wide, wanted_d});
          CHECK(d_wide.written_exactly());
          CHECK(relative_error(d_wide.values(), wanted_d.values()) < tolerance(dtype));
        }
      }
    }
  });
}

TEST_CASE("a linear layer on small numbers worked by hand") {
  for_each_backend([](Kernels& kernels) {
    TestTensor x(DType::f32, {2, 3});
    TestTensor w(DType::f32, {2, 3});
    TestTensor bias(DType::f32, {2});
    TestTensor y(DType::f32, {2, 2});
    x.set({1, 2, 3, 4, 5, 6});
    w.set({1, 0, -1, 2, 1, 0});
    bias.set({10, 20});
    kernels.issue(LinearForward{x, w, bias, y});
    CHECK(y.values() == std::vector<float>{8, 24, 8, 33});
    kernels.issue(LinearForward{x, w, {}, y});
    CHECK(y.values() == std::vector<float>{-2, 4, -2, 13});

    TestTensor dx(DType::f32, {2, 3});
    kernels.issue(LinearBackwardInput{y, w, dx});
    CHECK(dx.values() == std::vector<float>{6, 4, 2, 24, 13, 2});

    TestTensor dw(DType::f32, {2, 3});
    TestTensor d_bias(DType::f32, {2});
    dw.set({100, 0, 0, 0, 0, 0});
    d_bias.set({1, 1});
    kernels.issue(LinearBackwardWeight{y, x, dw, d_bias});
    CHECK(dw.values() == std::vector<float>{90, -14, -18, 56, 73, 90});
    CHECK(d_bias.values() == std::vector<float>{-3, 18});
  });
}

TEST_CASE("products equal sums in double for odd shapes, types and strides") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for_each_backend([&](Kernels& kernels) {
    for (const auto& [rows, in, out] : shapes) {
      INFO(name(dtype) << " rows " << rows << " in " << in << " out " << out);
      TestTensor x(dtype, {rows, in}, spread);
      TestTensor w(dtype, {out, in});
      TestTensor bias(dtype, {out});
      TestTensor y(dtype, {rows, out}, spread);
      TestTensor wide(DType::f32, {rows, out}, spread);
      x.randomise(1);
      w.randomise(2);
      bias.set(std::vector<float>(static_cast<std::size_t>(out), 0.5F));
      auto expected = naive(x.values(), w.values(), in);
      kernels.issue(LinearForward{x, w, {}, y});
      CHECK(relative_error(y.values(), expected) < tolerance(dtype));
      for (auto& value : expected) value += 0.5F;
      kernels.issue(LinearForward{x, w, bias, wide});
      // Inputs are exact; only the sum is rounded.
      CHECK(relative_error(wide.values(), expected) < 1e-5);
      CHECK(y.written_exactly());
      CHECK(wide.written_exactly());

      TestTensor dx(dtype, {rows, in}, spread);
      y.randomise(3);
      const auto through = naive(y.values(), transposed(w.values(), in), out);
      kernels.issue(LinearBackwardInput{y, w, dx});
      CHECK(relative_error(dx.values(), through) < tolerance(dtype));
      CHECK(dx.written_exactly());

      TestTensor dw(DType::f32, {out, in});
      TestTensor d_bias(DType::f32, {out});
      kernels.issue(Fill{dw, 0.0F});
      kernels.issue(Fill{d_bias, 0.0F});
      kernels.issue(LinearBackwardWeight{y, x, dw, d_bias});
      const auto dy_columns = transposed(y.values(), out);
      const auto ones = std::vector<float>(static_cast<std::size_t>(rows), 1.0F);
      CHECK(relative_error(dw.values(), naive(dy_columns, transposed(x.values(), in), rows)) <
            1e-5);
      CHECK(relative_error(d_bias.values(), naive(dy_columns, ones, rows)) < 1e-5);
      CHECK(dw.written_exactly());
      CHECK(d_bias.written_exactly());
    }
  });
}

TEST_CASE("weights may be rows or columns of a wider matrix") {
  for_each_backend([](Kernels& kernels) {
    TestTensor x(DType::f32, {4, 6});
    TestTensor whole(DType::f32, {10, 12});
    x.randomise(1);
    whole.randomise(2);
    const auto w = whole.view().slice(0, 2, 5).slice(1, 3, 6);
    TestTensor packed(DType::f32, {5, 6});
    kernels.issue(Copy{w, packed});
    TestTensor y(DType::f32, {4, 5});
    TestTensor expected(DType::f32, {4, 5});
    kernels.issue(LinearForward{x, w, {}, y});
    kernels.issue(LinearForward{x, packed, {}, expected});
    CHECK(relative_error(y.values(), expected.values()) < 1e-6);
    TestTensor dx(DType::f32, {4, 6});
    TestTensor dx_expected(DType::f32, {4, 6});
    kernels.issue(LinearBackwardInput{y, w, dx});
    kernels.issue(LinearBackwardInput{y, packed, dx_expected});
    CHECK(relative_error(dx.values(), dx_expected.values()) < 1e-6);
  });
}
