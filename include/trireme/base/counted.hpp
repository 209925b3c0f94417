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

}  // namespace trireme::base
