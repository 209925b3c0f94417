// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/cpu_kernels.hpp"
#include "device/cpu/runtime/range.hpp"
#include "device/cpu/simd/tables.hpp"
#include "device/denormals.hpp"
#include "device/dropout_mask.hpp"
#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

constexpr std::int64_t rows = 149;
constexpr std::int64_t width = 333;

}  // namespace

TEST_CASE("the vector exponential is right to 2e-7 over its whole range") {
  flush_denormals();  // as every compute thread does
  for (const auto isa : cpu::all_isas) {
    if (!cpu::runs(isa)) continue;
    const auto exponentials = [&](std::vector<float>& x) {
      cpu::tables_of(isa).cross_entropy.f32.probabilities(
          x.data(), static_cast<std::int64_t>(x.size()), 0.0F, 1.0F);
    };
    double worst = 0;
    // Every 997th float from the smallest result that is not denormal to the largest.
    for (const bool negative : {false, true}) {
      const float limit = negative ? 87.3F : 88.3F;
      std::vector<float> x;
      for (std::uint32_t bits = 0; bits <= std::bit_cast<std::uint32_t>(limit); bits += 997) {
        x.push_back(negative ? -std::bit_cast<float>(bits) : std::bit_cast<float>(bits));
      }
      auto y = x;
      exponentials(y);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = std::exp(static_cast<double>(x[i]));
        worst = std::max(worst, std::abs(static_cast<double>(y[i]) / exact - 1.0));
      }
    }
    INFO(cpu::name(isa) << " worst relative error " << worst);
    CHECK(worst < 2e-7);
    CHECK(worst > 1e-9);
    std::vector<float> special{0.0F, -INFINITY, -1e9F, -90.0F, INFINITY, 1e9F, 100.0F, NAN};
    exponentials(special);
    CHECK(special[0] == 1.0F);
    CHECK(special[1] == 0.0F);
    CHECK(special[2] == 0.0F);
    CHECK(special[3] == 0.0F);
    CHECK(std::isinf(special[4]));
    CHECK(std::isinf(special[5]));
    CHECK(std::isinf(special[6]));
    CHECK(std::isnan(special[7]));
  }
}

TEST_CASE("vectors round to bf16 as the scalar code does, for every exponent") {
  for (const auto isa : cpu::all_isas) {
    if (!cpu::runs(isa)) continue;
    std::vector<float> x;
    for (std::uint64_t bits = 0; bits < (1ULL << 32); bits += 65'521 / 3) {
      x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    }
    for (std::uint32_t bits = 0x3F7FFFF0; bits < 0x3F830010; ++bits) {
      x.push_back(std::bit_cast<float>(bits));
    }
    for (const std::uint32_t bits : {0x7F800001U, 0xFFC00000U, 0x7FFFFFFFU, 0x7F7FFFFFU}) {
      x.push_back(std::bit_cast<float>(bits));
    }
    std::vector<Bf16> y(x.size());
    cpu::tables_of(isa).arithmetic.f32.to_bf16(x.data(), y.data(),
                                               static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto wanted = to_bf16(x[i]);
      // The instruction that rounds at once reads denormal numbers as zero.
      const bool denormal = std::abs(x[i]) < 0x1p-126F;
      if (isa == cpu::Isa::avx512_bf16 && denormal) wanted.bits &= 0x8000;
      if (y[i].bits != wanted.bits) {
        FAIL(cpu::name(isa) << " rounds " << std::bit_cast<std::uint32_t>(x[i]) << " to "
                            << y[i].bits << ", not " << wanted.bits);
      }
    }
  }
}

TEST_CASE("cpu dropout draws the reference's mask bit by bit") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto reference = make_reference_kernels();
  for (const auto isa : cpu::all_isas) {
    if (!cpu::runs(isa)) continue;
    for (const std::int64_t first_column : {0, 1, 2, 3, 7}) {
      INFO(cpu::name(isa) << " first column " << first_column << ", --rng-seed " << run_seed());
      TestTensor x(dtype, {rows, width});
      TestTensor expected(dtype, {rows, width});
      TestTensor y(dtype, {rows, width}, Spread::strided);
      x.randomise(1);
      // Counters pass 2^32 inside this mask.
      const Dropout mask{0.3F, run_seed(), 99, 17179869184 / 340 - 50, first_column, 340};
      reference->issue(ApplyDropout{x, mask, expected});
      cpu::make_kernels(3, isa)->issue(ApplyDropout{x, mask, y});
      CHECK((y.values() == expected.values()));
      CHECK(y.untouched_outside());
      std::vector<float> factors(77);
      const DropoutMask plain(mask);
      cpu::tables_of(isa).dropout.factors(
          {plain.rate(), plain.kept_factor(), plain.seed(), plain.stream()},
          static_cast<std::uint64_t>(1000 + first_column), factors.data(), 77);
      std::vector<float> wanted(77);
      plain.factors(1000 + first_column, 77, wanted.data());
      CHECK((factors == wanted));
      for (std::int64_t i = 0; i < 77; ++i) {
        REQUIRE(wanted[static_cast<std::size_t>(i)] == plain.factor(1000 + first_column + i));
      }
    }
  }
}

TEST_CASE("every compute thread flushes denormals") {
  const auto kernels = make_cpu_kernels(3);
  TestTensor x(DType::f32, {3 * 8192});
  TestTensor y(DType::f32, {3 * 8192});
  x.set(std::vector<float>(3 * 8192, 2e-38F));
  y.set(std::vector<float>(3 * 8192, -1.5e-38F));
  kernels->issue(Add{x, y, x});  // 5e-39 has no normal float
  for (const auto value : x.values()) {
    if (value != 0.0F) FAIL("a denormal was kept");
  }
}

TEST_CASE("work is cut into parts that cover it once, at multiples of the grain") {
  for (const std::int64_t count : {0, 1, 63, 64, 65, 1000}) {
    for (const std::int64_t grain : {1, 64}) {
      for (const int parts : {1, 2, 3, 16}) {
        std::int64_t next = 0;
        for (int part = 0; part < parts; ++part) {
          const auto range = cpu::part_of(count, grain, parts, part);
          CHECK(range.begin == next);
          CHECK(range.count() >= 0);
          CHECK((range.end == count || range.end % grain == 0));
          next = range.end;
        }
        CHECK(next == count);
      }
    }
  }
}

TEST_CASE("kernels for an impossible number of threads are a broken contract") {
  CHECK_THROWS(make_cpu_kernels(0));
  CHECK(std::string(make_cpu_kernels(1)->name()) == "cpu");
}
