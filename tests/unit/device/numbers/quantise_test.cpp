// SPDX-License-Identifier: Apache-2.0
// Copies in FP8: every backend makes the codes that the format's own functions make, bit by bit.
#include "trireme/device/float8.hpp"

#include "unit/device/backends.hpp"
#include "unit/device/compare.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

struct Codes {
  explicit Codes(std::int64_t rows, std::int64_t width) : codes(DType::e4m3, {rows, width}) {}
  Quantised view() const { return {codes, unscale}; }

  TestTensor magnitude{DType::f32, {1}};
  TestTensor codes;
  TestTensor unscale{DType::f32, {1}};
};

}  // namespace

TEST_CASE("codes, scales and magnitudes are exact on odd shapes") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for (const auto& shape :
       shapes_of({{1, 1}, {37, 7}, {3, 33}, {20, 64}, {5, 1000}, {2, 2309}}, {149, 333})) {
    INFO("rows " << shape.rows << ", width " << shape.width);
    compare_exactly([&](Kernels& kernels) {
      TestTensor x(dtype, {shape.rows, shape.width}, spread);
      // Some numbers fall below the least code.
      x.randomise(1, 1e-3F);
      Codes copy(shape.rows, shape.width);
      kernels.issue(LargestMagnitude{x, copy.magnitude});
      kernels.issue(Quantise{x, copy.magnitude, copy.view()});
      return all({copy.magnitude, copy.codes, copy.unscale});
    });
  }
}

TEST_CASE("a quantised tensor is its numbers times a power of two, rounded") {
  for_each_backend([](Kernels& kernels) {
    const auto dtype = GENERATE(DType::f32, DType::bf16);
    TestTensor x(dtype, {6, 50}, Spread::strided);
    x.randomise(3, 5.0F);
    Codes copy(6, 50);
    kernels.issue(LargestMagnitude{x, copy.magnitude});
    kernels.issue(Quantise{x, copy.magnitude, copy.view()});
    const auto numbers = x.values();
    float largest = 0;
    for (const auto number : numbers) largest = std::max(largest, std::abs(number));
    CHECK(copy.magnitude.at(0) == largest);
    const float scale = e4m3_scale(largest);
    CHECK(copy.unscale.at(0) == 1.0F / scale);
    CHECK(copy.codes.written_exactly());
    const auto codes = copy.codes.values();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      REQUIRE(codes[i] == to_float(to_e4m3(numbers[i] * scale)));
    }
  });
}

TEST_CASE("zeros are quantised as zeros, and a larger magnitude than a tensor's own is kept") {
  for_each_backend([](Kernels& kernels) {
    TestTensor x(DType::bf16, {3, 20});
    Codes copy(3, 20);
    kernels.issue(Fill{x, 0.0F});
    kernels.issue(LargestMagnitude{x, copy.magnitude});
    kernels.issue(Quantise{x, copy.magnitude, copy.view()});
    CHECK(copy.magnitude.at(0) == 0.0F);
    CHECK(copy.unscale.at(0) == 1.0F);
    CHECK(copy.codes.values() == std::vector<float>(60, 0.0F));
    // The part of the matrix that another rank of the tensor-parallel group holds is larger.
    kernels.issue(Fill{x, 1.5F});
    copy.magnitude.set({400.0F});
    kernels.issue(Quantise{x, copy.magnitude, copy.view()});
    CHECK(copy.unscale.at(0) == 1.0F);
    CHECK(copy.codes.values() == std::vector<float>(60, 1.5F));
    // Smaller ones would be a mistake; they saturate.
    copy.magnitude.set({1.0F / 512});
    kernels.issue(Quantise{x, copy.magnitude, copy.view()});
    CHECK(copy.codes.values() == std::vector<float>(60, 448.0F));
  });
}

TEST_CASE("what is not finite becomes no number in every code") {
  for_each_backend([](Kernels& kernels) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      INFO(bad);
      TestTensor x(DType::f32, {3, 37});
      x.randomise(1);
      x.f32_at(70) = bad;
      Codes copy(3, 37);
      kernels.issue(LargestMagnitude{x, copy.magnitude});
      CHECK_FALSE(std::isfinite(copy.magnitude.at(0)));
      kernels.issue(Quantise{x, copy.magnitude, copy.view()});
      CHECK(std::isnan(copy.unscale.at(0)));
      for (const auto code : copy.codes.values()) REQUIRE(std::isnan(code));
    }
  });
}
