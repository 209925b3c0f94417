// SPDX-License-Identifier: Apache-2.0
// The format from its definition, not from its bits: a table of what codes mean, and the nearest of
// the table by search.
#include "trireme/device/float8.hpp"

#include "trireme/base/philox.hpp"

#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

using namespace trireme::device;
using trireme::device::test::run_seed;

namespace {

/// (-1)^s * 2^(e - 7) * (1 + m / 8), or 2^-6 * m / 8 where e is 0 (OCP 8-bit floating point
/// specification, table 1).
double meaning(int code) {
  const int sign = code / 128;
  const int exponent = code / 8 % 16;
  const int mantissa = code % 8;
  if (exponent == 15 && mantissa == 7) return std::nan("");
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return sign == 0 ? size : -size;
}

/// The code nearest to the number; of two, the even one; none beyond the largest.
int nearest(double number) {
  int best = 0;
  const double size = std::abs(number);
  for (int code = 1; code < 127; ++code) {
    const double away = std::abs(meaning(code) - size);
    const double least = std::abs(meaning(best) - size);
    if (away < least || (away == least && code % 2 == 0)) best = code;
  }
  return std::signbit(number) ? best + 128 : best;
}

}  // namespace

TEST_CASE("each of the 256 codes of e4m3 means what its definition says") {
  for (int code = 0; code < 256; ++code) {
    INFO("code " << code);
    const float value = to_float(E4m3{static_cast<std::uint8_t>(code)});
    if (code % 128 == 127) {
      CHECK(std::isnan(value));
      CHECK(to_e4m3(value).bits == 0x7F);
      continue;
    }
    CHECK(static_cast<double>(value) == meaning(code));
    CHECK(std::signbit(value) == (code >= 128));
    CHECK(to_e4m3(value).bits == code);
  }
  CHECK(to_float(E4m3{0x7E}) == 448.0F);
  CHECK(to_float(E4m3{0x01}) == 0x1p-9F);
}

TEST_CASE("numbers halfway between two codes go to the even one, all others to the nearer") {
  for (int code = 0; code < 126; ++code) {
    INFO("above code " << code);
    const auto below = static_cast<float>(meaning(code));
    const auto above = static_cast<float>(meaning(code + 1));
    const float middle = below + (above - below) / 2;
    for (const float sign : {1.0F, -1.0F}) {
      const int offset = sign < 0 ? 128 : 0;
      CHECK(to_e4m3(sign * middle).bits == code + code % 2 + offset);
      CHECK(to_e4m3(sign * std::nextafter(middle, 0.0F)).bits == code + offset);
      CHECK(to_e4m3(sign * std::nextafter(middle, 1e9F)).bits == code + 1 + offset);
    }
  }
  for (std::uint64_t i = 0; i < 20000; ++i) {
    // Magnitudes from 2^-14 to 2^10.
    const auto bits = trireme::base::philox(run_seed(), 1, i);
    const float value = static_cast<float>(std::ldexp(
        static_cast<double>(bits[0]) / 4294967296.0 + 1, static_cast<int>(bits[1] % 24) - 14));
    const float number = bits[2] % 2 == 0 ? value : -value;
    INFO(number);
    REQUIRE(to_e4m3(number).bits == nearest(static_cast<double>(number)));
  }
}

TEST_CASE("numbers beyond the largest saturate, and what is no number stays none") {
  const float infinity = INFINITY;
  CHECK(to_e4m3(448.0F).bits == 0x7E);
  CHECK(to_e4m3(464.0F).bits == 0x7E);  // halfway to what would be 480
  CHECK(to_e4m3(1e30F).bits == 0x7E);
  CHECK(to_e4m3(infinity).bits == 0x7E);
  CHECK(to_e4m3(-infinity).bits == 0xFE);
  CHECK(to_e4m3(NAN).bits == 0x7F);
  CHECK(to_e4m3(-NAN).bits == 0x7F);
  CHECK(to_e4m3(-0.0F).bits == 0x80);
  CHECK(to_e4m3(0x1p-10F).bits == 0);  // halfway to the least
  CHECK(to_e4m3(std::nextafter(0x1p-10F, 1.0F)).bits == 1);
  CHECK(to_e4m3(1e-44F).bits == 0);
}

TEST_CASE("the scale is the largest power of two that keeps numbers within 448") {
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto bits = trireme::base::philox(run_seed(), 2, i);
    const auto magnitude = static_cast<float>(std::ldexp(
        static_cast<double>(bits[0]) / 4294967296.0 + 1, static_cast<int>(bits[1] % 200) - 100));
    const double scale = static_cast<double>(e4m3_scale(magnitude));
    INFO(magnitude);
    int exponent = 0;
    REQUIRE(std::frexp(scale, &exponent) == 0.5);
    REQUIRE(static_cast<double>(magnitude) * scale <= 448);
    REQUIRE(static_cast<double>(magnitude) * scale * 2 > 448);
    REQUIRE(static_cast<double>(e4m3_unscale(e4m3_scale(magnitude))) * scale == 1);
  }
  CHECK(e4m3_scale(448.0F) == 1.0F);
  CHECK(e4m3_scale(std::nextafter(448.0F, 1e9F)) == 0.5F);
  CHECK(e4m3_scale(0.0F) == 1.0F);
  CHECK(std::isnan(e4m3_scale(INFINITY)));
  CHECK(std::isnan(e4m3_scale(NAN)));
  CHECK(std::isnan(e4m3_unscale(e4m3_scale(INFINITY))));
  // The inverse of the smallest numbers is still one that no flushing of denormals touches.
  CHECK(e4m3_unscale(e4m3_scale(1e-40F)) == 0x1p-126F);
  CHECK(e4m3_unscale(e4m3_scale(3e38F)) == 0x1p120F);
}
