// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/format.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace trireme::base {

/// "1 thread", "2 threads": for nouns whose plural ends with s.
inline std::string counted(std::int64_t count, std::string_view noun) {
  return format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// "0.02297", "160", "71.5 thousand": how often, for people.
inline std::string factor_text(double factor) {
  // Powers of ten are for programs.
  constexpr double least_of_four_digits = 1e-4;
  if (factor >= 1e3) return count_text(factor);
  return factor >= least_of_four_digits || factor == 0 ? format("{:.4g}", factor)
                                                       : fixed_text(factor, 8);
}

}  // namespace trireme::base
