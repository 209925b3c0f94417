// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <filesystem>

/// Questions about names that a user gave. The standard library's own throw where a name is too
/// long, where a folder above it may not be searched, and where the working folder is gone: none of
/// it is a defect of ours, and what opens the file says what is wrong.
namespace trireme::base {

/// False also where it cannot be told.
inline bool exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}
inline bool is_directory(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

/// As it was given where the working folder is gone.
inline std::filesystem::path absolute(const std::filesystem::path& path) {
  std::error_code error;
  auto whole = std::filesystem::absolute(path, error);
  return error ? path : whole;
}

/// Failure (ExitCode::checkpoint) that such an exception tells of.
Failure failure_of(const std::filesystem::filesystem_error& error);

}  // namespace trireme::base
