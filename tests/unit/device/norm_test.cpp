// SPDX-License-Identifier: Apache-2.0
#include "unit/device/backends.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

/// Inputs and results of one norm over [2, 3, 2, 5].
struct Case {
  TestTensor x{DType::f32, {2, 3, 2, 5}, Spread::strided};
  TestTensor residual{DType::f32, {2, 3, 2, 5}, Spread::strided};
  TestTensor sum{DType::f32, {2, 3, 2, 5}, Spread::strided};
  TestTensor weight{DType::f32, {5}};
  TestTensor bias{DType::f32, {5}};
  TestTensor y{DType::f32, {2, 3, 2, 5}, Spread::strided};
  TestTensor mean{DType::f32, {12}};
  TestTensor rstd{DType::f32, {12}};
  TestTensor dy{DType::f32, {2, 3, 2, 5}, Spread::strided};
  TestTensor d_residual{DType::f32, {2, 3, 2, 5}, Spread::strided};
  TestTensor dx{DType::f32, {2, 3, 2, 5}, Spread::strided};
  TestTensor d_weight{DType::f32, {5}};
  TestTensor d_bias{DType::f32, {5}};

  Case() {
    x.randomise(1);
    residual.randomise(2);
    weight.randomise(3);
    bias.randomise(4);
    dy.randomise(5);
    d_residual.randomise(6);
    d_weight.set({1, 1, 1, 1, 1});
    d_bias.set({2, 2, 2, 2, 2});
  }
  NormForward forward(NormKind kind) const {
    NormForward norm{kind, x, residual, sum, weight, {}, y, {}, rstd, 1e-5F};
    if (kind == NormKind::layer) {
      norm.bias = bias;
      norm.mean = mean;
    }
    return norm;
  }
  NormBackward backward(NormKind kind) const {
    NormBackward norm{kind, dy, sum, weight, {}, rstd, d_residual, dx, d_weight, {}};
    if (kind == NormKind::layer) {
      norm.mean = mean;
      norm.d_bias = d_bias;
    }
    return norm;
  }
};

std::vector<float> minus(std::vector<float> values, float offset) {
  for (auto& value : values) value -= offset;
  return values;
}

}  // namespace

TEST_CASE("norms of a row worked by hand") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  for_each_backend([&](Kernels& kernels) {
    TestTensor x(dtype, {1, 4});
    TestTensor weight(dtype, {4});
    TestTensor bias(dtype, {4});
    TestTensor y(dtype, {1, 4});
    TestTensor mean(DType::f32, {1});
    TestTensor rstd(DType::f32, {1});
    x.set({1, 3, 5, 7});
    weight.set({1, 1, 2, 1});
    bias.set({0, 0, 0, 1});
    kernels.issue(NormForward{NormKind::layer, x, {}, {}, weight, bias, y, mean, rstd, 0.0F});
    const auto unit = 1.0 / std::sqrt(5.0);  // mean 4, variance 5
    CHECK(mean.at(0) == Approx(4));
    CHECK(rstd.at(0) == Approx(unit));
    const double margin = dtype == DType::f32 ? 1e-6 : 4e-3;
    const std::vector<double> layer{-3 * unit, -unit, 2 * unit, 3 * unit + 1};
    for (std::int64_t i = 0; i < 4; ++i) {
      CHECK(static_cast<double>(y.at(i)) ==
            Approx(layer[static_cast<std::size_t>(i)]).epsilon(margin));
    }
    kernels.issue(NormForward{NormKind::rms, x, {}, {}, weight, {}, y, {}, rstd, 4.0F});
    CHECK(rstd.at(0) == Approx(0.2));  // mean square 21, plus 4
    CHECK(y.at(0) == Approx(0.2).epsilon(margin));
    CHECK(y.at(2) == Approx(2.0).epsilon(margin));
  });
}

TEST_CASE("norms add the residual first and keep the sum") {
  for_each_backend([](Kernels& kernels) {
    const auto kind = GENERATE(NormKind::rms, NormKind::layer);
    Case with;
    kernels.issue(with.forward(kind));
    CHECK(with.sum.written_exactly());
    CHECK(with.y.written_exactly());
    CHECK(with.rstd.written_exactly());
    Case without;
    auto norm = without.forward(kind);
    norm.x = with.sum;
    norm.residual = {};
    norm.sum = {};
    kernels.issue(norm);
    CHECK(without.y.values() == with.y.values());
    const auto x = with.x.values();
    const auto residual = with.residual.values();
    for (std::size_t i = 0; i < x.size(); ++i) {
      REQUIRE(with.sum.values()[i] == x[i] + residual[i]);
    }
  });
}

TEST_CASE("in bf16 a norm sees the sum as it was rounded") {
  for_each_backend([](Kernels& kernels) {
    TestTensor x(DType::bf16, {1, 2});
    TestTensor residual(DType::bf16, {1, 2});
    TestTensor sum(DType::bf16, {1, 2});
    TestTensor weight(DType::bf16, {2});
    TestTensor y(DType::bf16, {1, 2});
    TestTensor rstd(DType::f32, {1});
    // 256 + 1 is 256 in bf16.
    x.set({256, 256});
    residual.set({1, -256});
    weight.set({1, 1});
    kernels.issue(NormForward{NormKind::rms, x, residual, sum, weight, {}, y, {}, rstd, 0.0F});
    CHECK(sum.values() == std::vector<float>{256, 0});
    CHECK(rstd.at(0) == Approx(std::sqrt(2.0) / 256));
  });
}

TEST_CASE("a norm of the sum that was kept has the bits of the norm that kept it") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto kind = GENERATE(NormKind::rms, NormKind::layer);
  for_each_backend([&](Kernels& kernels) {
    for (const std::int64_t width : {1, 5, 33, 64, 768, 1000, 4096}) {
      CAPTURE(width);
      TestTensor x(dtype, {7, width});
      TestTensor residual(dtype, {7, width});
      TestTensor sum(dtype, {7, width});
      TestTensor weight(dtype, {width});
      TestTensor y(dtype, {7, width});
      TestTensor again(dtype, {7, width});
      TestTensor mean(DType::f32, {7});
      TestTensor rstd(DType::f32, {7});
      x.randomise(1);
      residual.randomise(2);
      weight.randomise(3);
      NormForward norm{.kind = kind, .x = x, .weight = weight, .y = again};
      kernels.issue(NormForward{.kind = kind,
                                .x = x,
                                .residual = residual,
                                .sum = sum,
                                .weight = weight,
                                .y = y,
                                .mean = kind == NormKind::layer ? Tensor(mean) : Tensor{},
                                .rstd = rstd});
      norm.x = sum;
      kernels.issue(norm);
      CHECK(again.values() == y.values());
    }
  });
}

TEST_CASE("gradients of norms agree with finite differences") {
  for_each_backend([](Kernels& kernels) {
    for (const auto kind : {NormKind::rms, NormKind::layer}) {
      Case test;
      kernels.issue(test.forward(kind));
      kernels.issue(test.backward(kind));
      CHECK(test.dx.written_exactly());
      CHECK(test.d_weight.written_exactly());
      const auto through = test.dx.values();
      const auto direct = test.d_residual.values();
      const auto loss = [&] {
        kernels.issue(test.forward(kind));
        return dot(test.y.values(), test.dy.values()) + dot(test.sum.values(), direct);
      };
      CHECK(gradient_error(test.x, through, loss) < 1e-3);
      // A gradient that reaches the sum reaches both of its terms.
      CHECK(gradient_error(test.residual, through, loss) < 1e-3);
      CHECK(gradient_error(test.weight, minus(test.d_weight.values(), 1), loss) < 1e-3);
      if (kind == NormKind::layer) {
        CHECK(gradient_error(test.bias, minus(test.d_bias.values(), 2), loss) < 1e-3);
      }
    }
  });
}

TEST_CASE("the gradient that skips a norm may lie where the result goes") {
  for_each_backend([](Kernels& kernels) {
    for (const auto kind : {NormKind::rms, NormKind::layer}) {
      Case test;
      kernels.issue(test.forward(kind));
      kernels.issue(test.backward(kind));
      const auto expected = test.dx.values();
      auto in_place = test.backward(kind);
      in_place.dx = test.d_residual;
      kernels.issue(in_place);
      CHECK(test.d_residual.values() == expected);

      auto alone = test.backward(kind);
      alone.d_residual = {};
      test.d_residual.randomise(6);
      kernels.issue(alone);
      auto sum = test.dx.values();
      const auto direct = test.d_residual.values();
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += direct[i];
      CHECK(relative_error(sum, expected) < 1e-6);
    }
  });
}

TEST_CASE("a layer norm of numbers far from zero keeps its digits") {
  // The mean of squares minus the square of the mean would lose all of them: in fp32 the squares
  // are rounded to whole numbers here, and the variance is one. What remains is the rounding of
  // the mean itself, 2^-12.
  for_each_backend([](Kernels& kernels) {
    constexpr std::int64_t width = 333;
    TestTensor x(DType::f32, {1, width});
    TestTensor weight(DType::f32, {width});
    TestTensor y(DType::f32, {1, width});
    x.randomise(1);
    auto values = x.values();
    double mean = 0;
    for (auto& value : values) {
      value = 4096.0F + std::round(value * 16.0F) / 16.0F;
      mean += static_cast<double>(value) / static_cast<double>(width);
    }
    double variance = 0;
    for (const auto value : values) {
      variance += std::pow(static_cast<double>(value) - mean, 2) / static_cast<double>(width);
    }
    std::vector<float> expected;
    for (const auto value : values) {
      expected.push_back(
          static_cast<float>((static_cast<double>(value) - mean) / std::sqrt(variance)));
    }
    x.set(values);
    kernels.issue(Fill{weight, 1.0F});
    kernels.issue(NormForward{NormKind::layer, x, {}, {}, weight, {}, y, {}, {}, 0.0F});
    CHECK(relative_error(y.values(), expected) < 1e-3);
  });
}

TEST_CASE("norms of one number, and of two around their mean, keep the gradient that eps leaves") {
  const float eps = 1e-6F;
  for_each_backend([&](Kernels& kernels) {
    const auto backward = [&](NormKind kind, TestTensor& x, TestTensor& dy) {
      const auto width = static_cast<std::int64_t>(x.values().size());
      TestTensor weight(DType::f32, {width});
      TestTensor y(DType::f32, {1, width});
      TestTensor mean(DType::f32, {1});
      TestTensor rstd(DType::f32, {1});
      TestTensor dx(DType::f32, {1, width});
      TestTensor d_weight(DType::f32, {width});
      weight.randomise(3);
      d_weight.set(std::vector<float>(static_cast<std::size_t>(width), 0.0F));
      const bool layer = kind == NormKind::layer;
      const Tensor none;
      const Tensor kept_mean = layer ? mean.view() : none;
      kernels.issue(NormForward{kind, x, {}, {}, weight, none, y, kept_mean, rstd, eps});
      kernels.issue(NormBackward{kind, dy, x, weight, kept_mean, rstd, {}, dx, d_weight, {}, eps});
      return std::pair{dx.values(), weight.values()};
    };
    TestTensor x(DType::f32, {1, 1});
    TestTensor dy(DType::f32, {1, 1});
    x.set({0.7F});
    dy.set({1.3F});
    const auto [one, weight] = backward(NormKind::rms, x, dy);
    // y = x w / sqrt(x^2 + eps).
    const auto slope = [&](double at) {
      const auto e = static_cast<double>(eps);
      return e / std::pow(at * at + e, 1.5);
    };
    const auto g = static_cast<double>(1.3F) * static_cast<double>(weight[0]);
    CHECK(static_cast<double>(one[0]) ==
          Approx(g * slope(static_cast<double>(0.7F))).epsilon(1e-5));

    TestTensor pair(DType::f32, {1, 2});
    TestTensor d_pair(DType::f32, {1, 2});
    pair.set({1.5F, 0.5F});
    d_pair.set({0.25F, -2.0F});
    const auto [two, weights] = backward(NormKind::layer, pair, d_pair);
    // With d half the difference: y = (d, -d) w / sqrt(d^2 + eps).
    const auto difference =
        0.25 * static_cast<double>(weights[0]) + 2.0 * static_cast<double>(weights[1]);
    CHECK(static_cast<double>(two[0]) == Approx(difference / 2 * slope(0.5)).epsilon(1e-5));
    CHECK(two[1] == -two[0]);
  });
}
