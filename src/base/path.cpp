// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/path.hpp"

#include "trireme/base/folder.hpp"
#include "trireme/base/format.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace trireme::base {

Failure failure_of(const std::filesystem::filesystem_error& error) {
  const auto reason = error.code().message();
  const auto one = error.path1().string();
  const auto other = error.path2().string();
  if (!other.empty()) {
    return {ExitCode::checkpoint, format("cannot use '{}' and '{}': {}", one, other, reason)};
  }
  if (!one.empty()) return {ExitCode::checkpoint, format("cannot use '{}': {}", one, reason)};
  // Neither the working folder nor the folder whose next entry is read has a name in an exception.
  std::error_code gone;
  static_cast<void>(std::filesystem::current_path(gone));
  if (!gone) return {ExitCode::checkpoint, format("cannot read a folder: {}", reason)};
  return {ExitCode::checkpoint,
          format("the working folder cannot be used ({}); change to one that exists", reason)};
}

std::string folder_fault(const std::filesystem::path& folder) {
  auto at = base::absolute(folder).lexically_normal();
  for (;;) {
    struct stat facts {};
    int error = ::stat(at.c_str(), &facts) == 0 ? 0 : errno;
    if (error == 0) {
      const bool is_usable = S_ISDIR(facts.st_mode) && ::access(at.c_str(), W_OK | X_OK) == 0;
      if (is_usable) return {};
      error = S_ISDIR(facts.st_mode) ? errno : ENOTDIR;
    }
    // Folders that are missing are made.
    if (error != ENOENT || !at.has_relative_path()) {
      return format("'{}': {}", at.string(), std::strerror(error));
    }
    at = at.parent_path();
  }
}

}  // namespace trireme::base
