// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/path.hpp"

#include "trireme/base/format.hpp"

namespace trireme::base {

Failure failure_of(const std::filesystem::filesystem_error& error) {
  const auto& path = error.path1();
  const auto reason = error.code().message();
  if (path.empty()) {
    return {ExitCode::checkpoint,
            format("the working folder cannot be used ({}); change to one that exists", reason)};
  }
  return {ExitCode::checkpoint, format("cannot use '{}': {}", path.string(), reason)};
}

}  // namespace trireme::base
