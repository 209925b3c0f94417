// SPDX-License-Identifier: Apache-2.0
// Parameters rounded at random: every backend takes the same bits from the same counters, whatever
// part of a tensor it has, and the mean keeps what is cut off.
#include "trireme/base/philox.hpp"

#include "unit/device/backends.hpp"
#include "unit/device/compare.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>

using namespace trireme;
using namespace trireme::device;
using namespace trireme::device::test;

namespace {

constexpr std::uint64_t seed = 0x0123456789ABCDEFU;
constexpr std::uint64_t stream = 0xFEDCBA9876543210U;

StochasticRounding whole_tensor(std::int64_t width) {
  return {.seed = seed, .stream = stream, .width = width, .stride = width};
}

/// By the definition: eight neighbours share a counter, each takes 16 bits, low halves first.
float expected(float value, std::uint64_t number) {
  const auto words = base::philox(seed, stream, number / 8);
  const auto bits = words[number % 8 / 2] >> (number % 2 == 0 ? 0 : 16) & 0xFFFFU;
  const auto whole = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((whole + bits) & 0xFFFF0000U);
}

TestTensor numbers(std::int64_t count, std::uint64_t stream_of_test, float scale = 1.0F) {
  TestTensor tensor(DType::f32, {count});
  tensor.randomise(stream_of_test, scale);
  return tensor;
}

}  // namespace

TEST_CASE("bits for rounding are those of an element's number in its tensor, on odd shapes") {
  struct Part {
    std::int64_t begin, width, stride, first, count;
  };
  const Part parts[] = {{0, 1000, 1000, 0, 1000}, {0, 37, 37, 0, 37},
                        {3, 37, 37, 0, 500},      {11, 5, 13, 4, 300},
                        {0, 1, 3, 2, 100},        {5, 8, 24, 16, 203},
                        {7, 64, 100, 36, 1025},   {1, 300, 300, (std::int64_t{1} << 35) + 5, 299},
                        {2, 24, 48, 24, 1},       {0, 16, 1 << 20, std::int64_t{1} << 33, 4099}};
  for (const auto& part : parts) {
    INFO("begin " << part.begin << ", width " << part.width << ", count " << part.count);
    const StochasticRounding rounding{.seed = seed,
                                      .stream = stream,
                                      .begin = part.begin,
                                      .width = part.width,
                                      .stride = part.stride,
                                      .first = part.first};
    for_each_backend([&](Kernels& kernels) {
      const auto master = numbers(part.count, 1);
      TestTensor parameter(DType::bf16, {part.count});
      kernels.issue(RoundStochastically{master, rounding, parameter});
      CHECK(parameter.written_exactly());
      const auto from = master.values();
      const auto found = parameter.values();
      for (std::int64_t i = 0; i < part.count; ++i) {
        const auto place = part.begin + i;
        const auto number = part.first + place / part.width * part.stride + place % part.width;
        INFO("element " << i);
        REQUIRE(found[static_cast<std::size_t>(i)] ==
                expected(from[static_cast<std::size_t>(i)], static_cast<std::uint64_t>(number)));
      }
    });
    compare_exactly([&](Kernels& kernels) {
      const auto master = numbers(part.count, 2);
      TestTensor parameter(DType::bf16, {part.count});
      kernels.issue(RoundStochastically{master, rounding, parameter});
      return all({parameter});
    });
  }
}

TEST_CASE("a tensor rounded in parts has the bits of the whole") {
  for_each_backend([](Kernels& kernels) {
    constexpr std::int64_t rows = 7;
    constexpr std::int64_t width = 45;
    const auto master = numbers(rows * width, 3);
    TestTensor whole(DType::bf16, {rows * width});
    kernels.issue(RoundStochastically{master, whole_tensor(width), whole});
    // Parts of a flat buffer, as ZeRO cuts it.
    TestTensor parts(DType::bf16, {rows * width});
    for (const auto& [begin, end] : {std::pair{0, 101}, std::pair{101, 102}, std::pair{102, 315}}) {
      auto rounding = whole_tensor(width);
      rounding.begin = begin;
      kernels.issue(RoundStochastically{master.view().slice(0, begin, end - begin), rounding,
                                        parts.view().slice(0, begin, end - begin)});
    }
    CHECK(parts.values() == whole.values());
    // Columns 9 to 31, as tensor parallelism cuts it.
    TestTensor columns(DType::f32, {rows * 22});
    std::vector<float> cut;
    std::vector<float> expected_columns;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 9; column < 31; ++column) {
        cut.push_back(master.at(row * width + column));
        expected_columns.push_back(whole.at(row * width + column));
      }
    }
    columns.set(cut);
    TestTensor rounded(DType::bf16, {rows * 22});
    auto rounding = whole_tensor(22);
    rounding.stride = width;
    rounding.first = 9;
    kernels.issue(RoundStochastically{columns, rounding, rounded});
    CHECK(rounded.values() == expected_columns);
  });
}

TEST_CASE("updates write the parameter that rounding their master alone would write") {
  constexpr std::int64_t count = 1031;
  for_each_backend([](Kernels& kernels) {
    auto rounding = whole_tensor(103);
    rounding.begin = 5;
    for (const bool adam : {true, false}) {
      const auto gradient = numbers(count, 4);
      auto master = numbers(count, 5);
      const auto before = master.values();
      auto first = numbers(count, 6, 0.1F);
      TestTensor second(DType::f32, {count});
      second.set(std::vector<float>(count, 0.5F));
      TestTensor parameter(DType::bf16, {count});
      AdamW adamw{.learning_rate = 0.01F, .step = 3, .rounding = rounding};
      Sgd sgd{.learning_rate = 0.01F, .momentum = 0.9F, .rounding = rounding};
      // The master is what it is without rounding.
      auto plain_master = numbers(count, 5);
      auto plain_first = numbers(count, 6, 0.1F);
      TestTensor plain_second(DType::f32, {count});
      plain_second.set(std::vector<float>(count, 0.5F));
      TestTensor nearest(DType::bf16, {count});
      if (adam) {
        kernels.issue(AdamWUpdate{adamw, gradient, master, first, second, parameter});
        adamw.rounding = {};
        kernels.issue(
            AdamWUpdate{adamw, gradient, plain_master, plain_first, plain_second, nearest});
      } else {
        kernels.issue(SgdUpdate{sgd, gradient, master, first, parameter});
        sgd.rounding = {};
        kernels.issue(SgdUpdate{sgd, gradient, plain_master, plain_first, nearest});
      }
      CHECK(master.values() != before);
      CHECK(master.values() == plain_master.values());
      CHECK(first.values() == plain_first.values());
      CHECK(second.values() == plain_second.values());
      TestTensor alone(DType::bf16, {count});
      kernels.issue(RoundStochastically{master, rounding, alone});
      CHECK(parameter.written_exactly());
      CHECK(parameter.values() == alone.values());
      CHECK(parameter.values() != nearest.values());
    }
  });
}

TEST_CASE("rounding at random keeps the mean, and takes neighbours alone") {
  // The share of n roundings that goes up with probability p has a standard deviation of sqrt(p (1
  // - p) / n): six of them are met by chance once in 5e8. The numbers are fixed.
  constexpr std::int64_t count = 40000;
  for_each_backend([](Kernels& kernels) {
    for (const double p : {0.5, 1.0 / 256, 0.9, 1.0 / 3}) {
      for (const float sign : {1.0F, -1.0F}) {
        INFO("p " << p << ", sign " << sign);
        // Numbers of bf16 between 1 and 2 are 2^-7 apart.
        const float below = sign;
        const float above = sign * (1.0F + 0x1p-7F);
        const float value = sign * static_cast<float>(1.0 + p * 0x1p-7);
        TestTensor master(DType::f32, {count});
        master.set(std::vector<float>(count, value));
        TestTensor parameter(DType::bf16, {count});
        kernels.issue(RoundStochastically{master, whole_tensor(count), parameter});
        std::int64_t up = 0;
        for (const auto found : parameter.values()) {
          REQUIRE((found == below || found == above));
          if (found == above) ++up;
        }
        const double share = static_cast<double>(up) / static_cast<double>(count);
        CHECK(std::abs(share - p) < 6 * std::sqrt(p * (1 - p) / static_cast<double>(count)));
      }
    }
  });
}

TEST_CASE("seeds and streams give other bits") {
  for_each_backend([](Kernels& kernels) {
    const auto master = numbers(1000, 7);
    const auto rounded = [&](const StochasticRounding& rounding) {
      TestTensor parameter(DType::bf16, {1000});
      kernels.issue(RoundStochastically{master, rounding, parameter});
      return parameter.values();
    };
    auto other_seed = whole_tensor(1000);
    other_seed.seed += std::uint64_t{1} << 32;
    auto other_stream = whole_tensor(1000);
    other_stream.stream += std::uint64_t{1} << 32;
    const auto plain = rounded(whole_tensor(1000));
    CHECK(rounded(whole_tensor(1000)) == plain);
    CHECK(rounded(other_seed) != plain);
    CHECK(rounded(other_stream) != plain);
    CHECK(rounded(other_stream) != rounded(other_seed));
  });
}

TEST_CASE("what bf16 holds is not rounded, and nothing becomes a number that it was not") {
  for_each_backend([](Kernels& kernels) {
    constexpr float largest = 0x1.FEp127F;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> exact{0.0F,     -0.0F,    1.0F,      -2.5F,     largest,
                                   -largest, infinity, -infinity, 0x1p-126F, 0x1p-130F};
    constexpr std::int64_t each = 64;
    std::vector<float> values;
    for (const auto value : exact) values.insert(values.end(), each, value);
    const auto count = static_cast<std::int64_t>(values.size());
    TestTensor master(DType::f32, {count});
    master.set(values);
    TestTensor parameter(DType::bf16, {count});
    kernels.issue(RoundStochastically{master, whole_tensor(count), parameter});
    const auto found = parameter.values();
    for (std::size_t i = 0; i < values.size(); ++i) {
      REQUIRE(std::bit_cast<std::uint32_t>(found[i]) == std::bit_cast<std::uint32_t>(values[i]));
    }
    // Beyond the largest number of bf16 comes infinity, never a NaN; a NaN stays one, whichever of
    // its bits are set.
    for (const float sign : {1.0F, -1.0F}) {
      TestTensor beyond(DType::f32, {count});
      beyond.set(std::vector<float>(static_cast<std::size_t>(count),
                                    sign * std::numeric_limits<float>::max()));
      kernels.issue(RoundStochastically{beyond, whole_tensor(count), parameter});
      bool any_infinite = false;
      for (const auto value : parameter.values()) {
        REQUIRE((value == sign * largest || value == sign * infinity));
        any_infinite = any_infinite || std::isinf(value);
      }
      CHECK(any_infinite);
      for (const std::uint32_t bits : {0x7F800001U, 0x7FFFFFFFU, 0x7FC00000U}) {
        beyond.set(std::vector<float>(static_cast<std::size_t>(count),
                                      std::copysign(std::bit_cast<float>(bits), sign)));
        kernels.issue(RoundStochastically{beyond, whole_tensor(count), parameter});
        for (const auto value : parameter.values()) {
          REQUIRE(std::isnan(value));
          REQUIRE(std::signbit(value) == (sign < 0));
        }
      }
    }
  });
}

TEST_CASE("what is rounded at random moves with updates that the nearest number swallows") {
  for_each_backend([](Kernels& kernels) {
    constexpr std::int64_t count = 4000;
    // A hundredth of the distance between neighbours of 1 in bf16, a hundred times.
    constexpr float learning_rate = 0x1p-7F / 100;
    TestTensor gradient(DType::f32, {count});
    gradient.set(std::vector<float>(count, -1.0F));
    TestTensor master(DType::f32, {count});
    master.set(std::vector<float>(count, 1.0F));
    TestTensor momentum(DType::f32, {count});
    momentum.set(std::vector<float>(count, 0.0F));
    TestTensor parameter(DType::bf16, {count});
    auto rounding = whole_tensor(count);
    for (int step = 1; step <= 30; ++step) {
      rounding.seed = static_cast<std::uint64_t>(step);
      const Sgd rule{.learning_rate = learning_rate, .rounding = rounding};
      kernels.issue(SgdUpdate{rule, gradient, master, momentum, parameter});
    }
    CHECK(to_float(to_bf16(master.at(0))) == 1.0F);
    double mean = 0;
    for (const auto value : parameter.values()) mean += static_cast<double>(value) / count;
    const double deviation = 0x1p-7 * std::sqrt(0.3 * 0.7 / count);
    CHECK(std::abs(mean - static_cast<double>(master.at(0))) < 6 * deviation);
    CHECK(mean > 1.0 + 0x1p-7 / 5);
  });
}
