// SPDX-License-Identifier: Apache-2.0
#include "exact_sum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trireme::engine {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr int digit_bits = 16;
constexpr std::int64_t digit_limit = std::int64_t{1} << digit_bits;
/// Exponent of the last bit of the smallest double.
constexpr int lowest = -1074;

}  // namespace

void ExactSum::add(double value) {
  if (!std::isfinite(value)) {
    others_[std::isnan(value) ? 2 : (value > 0 ? 0 : 1)] = 1;
    return;
  }
  int exponent = 0;
  const double fraction = std::frexp(std::abs(value), &exponent);
  constexpr int mantissa_bits = std::numeric_limits<double>::digits;
  auto mantissa = static_cast<std::uint64_t>(std::ldexp(fraction, mantissa_bits));
  int place = exponent - mantissa_bits - lowest;
  if (place < 0) {
    // The bits that go are zero: nothing is below the smallest double.
    mantissa >>= -place;
    place = 0;
  }
  const std::int64_t sign = value < 0 ? -1 : 1;
  auto digit = static_cast<std::size_t>(place / digit_bits);
  for (auto rest = Wide{mantissa} << (place % digit_bits); rest != 0; rest >>= digit_bits) {
    digits_[digit++] += sign * static_cast<std::int64_t>(rest % digit_limit);
  }
}

void ExactSum::normalise(Digits& of) {
  for (std::size_t at = 0; at + 1 < of.size(); ++at) {
    // Rounds down, also below zero.
    const auto carry = of[at] >> digit_bits;
    of[at] -= carry * digit_limit;
    of[at + 1] += carry;
  }
}

double ExactSum::value() const {
  if (others_[2] > 0 || (others_[0] > 0 && others_[1] > 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (others_[0] > 0) return std::numeric_limits<double>::infinity();
  if (others_[1] > 0) return -std::numeric_limits<double>::infinity();
  auto known = digits_;
  normalise(known);
  const double sign = known.back() < 0 ? -1 : 1;
  if (sign < 0) {
    for (auto& digit : known) digit = -digit;
    normalise(known);
  }
  double sum = 0;
  for (std::size_t at = 0; at < known.size(); ++at) {
    const auto exponent = lowest + digit_bits * static_cast<int>(at);
    sum += std::ldexp(static_cast<double>(known[at]), exponent);
  }
  return sign * sum;
}

void ExactSum::write(std::span<std::int32_t, words> to) {
  normalise(digits_);
  auto next = std::transform(digits_.begin(), digits_.end(), to.begin(),
                             [](std::int64_t digit) { return static_cast<std::int32_t>(digit); });
  std::transform(others_.begin(), others_.end(), next,
                 [](std::int64_t count) { return static_cast<std::int32_t>(count); });
}

void ExactSum::read(std::span<const std::int32_t, words> from) {
  for (std::size_t at = 0; at + 1 < digits; ++at) {
    digits_[at] = static_cast<std::uint32_t>(from[at]);
  }
  // The last one has a sign.
  digits_.back() = from[digits - 1];
  std::copy_n(from.begin() + digits, others_.size(), others_.begin());
}

}  // namespace trireme::engine
