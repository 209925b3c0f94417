// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"

#include "trireme/base/format.hpp"

#include <cstring>

namespace trireme::base {

void throw_errno(ExitCode code, const std::string& doing, int error_number,
                 std::source_location where) {
  throw Error(code, format("{}: {}", doing, std::strerror(error_number)), where);
}

}  // namespace trireme::base
