// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/philox.hpp"

#include <cmath>
#include <numbers>

namespace trireme::base {

float philox_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  // One counter gives two normal numbers; the index says which counter and which of the two.
  const auto bits = philox(seed, stream, index >> 1);
  // (0, 1]: the logarithm stays finite.
  const double uniform = (static_cast<double>(bits[0]) + 1.0) * 0x1.0p-32;
  const double angle = static_cast<double>(bits[1]) * 0x1.0p-32 * 2.0 * std::numbers::pi;
  const double radius = std::sqrt(-2.0 * std::log(uniform));
  return static_cast<float>(radius * ((index & 1U) == 0 ? std::cos(angle) : std::sin(angle)));
}

}  // namespace trireme::base
