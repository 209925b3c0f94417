// SPDX-License-Identifier: Apache-2.0
#include "unit/device/backends.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

using namespace trireme::device;
using namespace trireme::device::test;

TEST_CASE("activations at published points") {
  for_each_backend([](Kernels& kernels) {
    TestTensor x(DType::f32, {5});
    TestTensor one(DType::f32, {5});
    TestTensor y(DType::f32, {5});
    x.set({-1, 0, 1, 2, 30});
    one.set({1, 1, 1, 1, 2});
    kernels.issue(GeluForward{x, y});
    // The tanh form: differs from x * Phi(x) in the fourth digit.
    const std::vector<double> gelu{-0.15880801, 0, 0.84119199, 1.95459769, 30};
    for (std::int64_t i = 0; i < 5; ++i) {
      CHECK(static_cast<double>(y.at(i)) == Approx(gelu[static_cast<std::size_t>(i)]).margin(1e-7));
    }
    kernels.issue(SwigluForward{x, one, y});
    const std::vector<double> swiglu{-0.26894142, 0, 0.73105858, 1.76159416, 60};
    for (std::int64_t i = 0; i < 5; ++i) {
      CHECK(static_cast<double>(y.at(i)) ==
            Approx(swiglu[static_cast<std::size_t>(i)]).margin(1e-7));
    }
  });
}

TEST_CASE("activations of large numbers stay finite and of NaN stay NaN") {
  for_each_backend([](Kernels& kernels) {
    TestTensor x(DType::f32, {4});
    TestTensor one(DType::f32, {4});
    TestTensor y(DType::f32, {4});
    TestTensor d_up(DType::f32, {4});
    const auto check = [](const TestTensor& tensor, const std::vector<float>& expected) {
      // Numbers that vanish may do so at the smallest floats instead of at zero.
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CHECK(tensor.values()[i] == Approx(expected[i]).epsilon(1e-6).margin(1e-25));
      }
    };
    one.set({1, 1, 1, 1});
    // Their exponentials overflow on the way.
    x.set({-3000, 3000, -300, 300});
    kernels.issue(GeluForward{x, y});
    check(y, {0, 3000, 0, 300});
    kernels.issue(GeluBackward{one, x, y});
    check(y, {0, 1, 0, 1});
    kernels.issue(SwigluForward{x, one, y});
    check(y, {0, 3000, 0, 300});
    kernels.issue(SwigluBackward{one, x, one, y, d_up});
    check(y, {0, 1, 0, 1});
    check(d_up, {0, 3000, 0, 300});
    x.set({NAN, NAN, NAN, NAN});
    kernels.issue(GeluForward{x, y});
    for (const auto value : y.values()) CHECK(std::isnan(value));
    kernels.issue(SwigluForward{x, one, y});
    for (const auto value : y.values()) CHECK(std::isnan(value));
  });
}

TEST_CASE("gradients of activations agree with finite differences") {
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for_each_backend([&](Kernels& kernels) {
    TestTensor x(DType::f32, {3, 37}, spread);
    TestTensor up(DType::f32, {3, 37}, spread);
    TestTensor y(DType::f32, {3, 37}, spread);
    TestTensor dy(DType::f32, {3, 37}, spread);
    TestTensor dx(DType::f32, {3, 37}, spread);
    TestTensor d_up(DType::f32, {3, 37}, spread);
    x.randomise(1, 2.0F);
    up.randomise(2);
    dy.randomise(3);
    kernels.issue(GeluBackward{dy, x, dx});
    CHECK(dx.written_exactly());
    CHECK(gradient_error(x, dx.values(), [&] {
            kernels.issue(GeluForward{x, y});
            return dot(y.values(), dy.values());
          }) < 1e-3);
    CHECK(y.written_exactly());
    kernels.issue(SwigluBackward{dy, x, up, dx, d_up});
    CHECK(d_up.written_exactly());
    const auto swiglu = [&] {
      kernels.issue(SwigluForward{x, up, y});
      return dot(y.values(), dy.values());
    };
    CHECK(gradient_error(x, dx.values(), swiglu) < 1e-3);
    CHECK(gradient_error(up, d_up.values(), swiglu) < 1e-3);
    const auto expected = dx.values();
    const auto expected_up = d_up.values();
    TestTensor gate_in_place(DType::f32, {3, 37}, spread);
    TestTensor up_in_place(DType::f32, {3, 37}, spread);
    kernels.issue(Copy{x, gate_in_place});
    kernels.issue(Copy{up, up_in_place});
    kernels.issue(SwigluBackward{dy, gate_in_place, up_in_place, gate_in_place, up_in_place});
    CHECK(gate_in_place.values() == expected);
    CHECK(up_in_place.values() == expected_up);
    kernels.issue(GeluBackward{dy, x, dx});
    const auto separate = dx.values();
    kernels.issue(GeluBackward{dy, x, dy});
    CHECK(dy.values() == separate);
  });
}

TEST_CASE("rotary embeddings turn pairs by the angle of their position and back") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  for_each_backend([&](Kernels& kernels) {
    TestTensor cosine(DType::f32, {4, 2});
    TestTensor sine(DType::f32, {4, 2});
    // Position 2 turns the first pair by a quarter, position 3 the second pair by a half.
    cosine.set({1, 1, 1, 1, 0, 1, 1, -1});
    sine.set({0, 0, 0, 0, 1, 0, 0, 0});
    TestTensor x(dtype, {1, 2, 1, 4});
    x.set({1, 2, 3, 4, 5, 6, 7, 8});
    kernels.issue(Rotary{x, cosine, sine, 2, false});
    CHECK(x.values() == std::vector<float>{-3, 2, 1, 4, 5, -6, 7, -8});
    kernels.issue(Rotary{x, cosine, sine, 2, true});
    CHECK(x.values() == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  });
}

TEST_CASE("rotary embeddings on slices of a fused matrix touch nothing else and are undone") {
  for_each_backend([](Kernels& kernels) {
    TestTensor cosine(DType::f32, {16, 9});
    TestTensor sine(DType::f32, {16, 9});
    std::vector<float> c;
    std::vector<float> s;
    for (int i = 0; i < 16 * 9; ++i) {
      c.push_back(std::cos(0.37F * static_cast<float>(i)));
      s.push_back(std::sin(0.37F * static_cast<float>(i)));
    }
    cosine.set(c);
    sine.set(s);
    TestTensor x(DType::f32, {2, 5, 3, 18}, Spread::strided);
    x.randomise(1);
    const auto before = x.values();
    kernels.issue(Rotary{x, cosine, sine, 11, false});
    CHECK(x.untouched_outside());
    CHECK(relative_error(x.values(), before) > 0.1);
    // A later part of the sequence alone turns as it does inside the whole.
    const auto turned = x.values();
    kernels.issue(Rotary{x, cosine, sine, 11, true});
    CHECK(relative_error(x.values(), before) < 1e-6);
    kernels.issue(Rotary{x.view().slice(1, 0, 2), cosine, sine, 11, false});
    kernels.issue(Rotary{x.view().slice(1, 2, 3), cosine, sine, 13, false});
    CHECK(relative_error(x.values(), turned) < 1e-6);
  });
}

TEST_CASE("the rows of a dropout mask may count from a number in memory, read when it is used") {
  for_each_backend([&](Kernels& kernels) {
    TestTensor x(DType::f32, {7, 33});
    TestTensor base(DType::i32, {2});
    x.set(std::vector<float>(7 * 33, 1.0F));
    for (const std::int64_t first :
         {std::int64_t{0}, std::int64_t{3000000000}, std::int64_t{5} << 33}) {
      CAPTURE(first);
      TestTensor expected(DType::f32, {7, 33});
      TestTensor found(DType::f32, {7, 33});
      kernels.issue(ApplyDropout{x, {0.5F, 7, 9, first + 4, 3, 40}, expected});
      std::memcpy(base.view().raw(), &first, sizeof first);
      kernels.issue(ApplyDropout{x, {0.5F, 7, 9, 4, 3, 40, base}, found});
      CHECK(found.values() == expected.values());
    }
  });
}

TEST_CASE("dropout keeps the promised share, scales it, and draws the same mask in any layout") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  for_each_backend([&](Kernels& kernels) {
    TestTensor x(dtype, {60, 101}, Spread::strided);
    TestTensor y(dtype, {60, 101}, Spread::strided);
    x.set(std::vector<float>(60 * 101, 1.0F));
    const Dropout mask{0.25F, 7, 9, 1000, 3, 104};
    kernels.issue(ApplyDropout{x, mask, y});
    CHECK(y.written_exactly());
    int kept = 0;
    for (const auto value : y.values()) {
      if (value == 0.0F) continue;
      ++kept;
      REQUIRE(value == Approx(4.0 / 3.0).epsilon(dtype == DType::f32 ? 1e-6 : 4e-3));
    }
    CHECK(std::abs(kept / 6060.0 - 0.75) < 0.04);  // seven standard deviations

    TestTensor parts(dtype, {60, 101}, Spread::strided);
    for (std::int64_t row = 0; row < 60; row += 20) {
      for (std::int64_t column : {0, 38}) {
        const auto columns = column == 0 ? 38 : 63;
        const Dropout part{0.25F, 7, 9, 1000 + row, 3 + column, 104};
        const auto cut = [&](const TestTensor& tensor) {
          return tensor.view().slice(0, row, 20).slice(1, column, columns);
        };
        kernels.issue(ApplyDropout{cut(x), part, cut(parts)});
      }
    }
    CHECK(parts.values() == y.values());

    kernels.issue(ApplyDropout{x, {}, y});
    CHECK(y.values() == x.values());
    auto other = mask;
    other.stream = 10;
    kernels.issue(ApplyDropout{x, other, y});
    CHECK(y.values() != parts.values());
    kernels.issue(ApplyDropout{x, mask, x});
    CHECK(x.values() == parts.values());
  });
}
