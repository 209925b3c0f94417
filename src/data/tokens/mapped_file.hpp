// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/handle.hpp"
#include "trireme/base/result.hpp"

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace trireme::data {

struct Mapping {
  void* address = nullptr;
  std::size_t length = 0;
  bool operator==(const Mapping&) const = default;
};

struct MappingTraits {
  using raw_type = Mapping;
  static Mapping null() { return {}; }
  static const char* name() { return "memory mapping"; }
  static std::optional<std::string> close(const Mapping& mapping);
};

/// A whole file, mapped read-only.
class MappedFile {
 public:
  MappedFile() = default;
  /// Failures (exit code 6) name the path.
  static base::Result<MappedFile> open(const std::filesystem::path& path);

  std::span<const std::byte> bytes() const {
    const auto& mapping = mapping_.get();
    return {static_cast<const std::byte*>(mapping.address), mapping.length};
  }
  std::size_t size() const { return mapping_.get().length; }

  /// Calls `reads`, which reads bytes() on this thread, throws nothing and has no objects with
  /// destructors. If the storage no longer provides them (the file was truncated, a file system
  /// fails), which the system reports by SIGBUS, throws base::Error (exit code 6) that names the
  /// file.
  void guard(const std::function<void()>& reads) const;

 private:
  std::filesystem::path path_;
  base::UniqueHandle<MappingTraits> mapping_;  // null for an empty file
};

/// The value at a byte offset that the caller has checked; alignment does not matter.
template <typename T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace trireme::data
