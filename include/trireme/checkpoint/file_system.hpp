// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace trireme::checkpoint {

/// System calls with which a save changes storage and a load reads it, one virtual function each,
/// so that a test can make any of them fail, or end the process before it. Results as the system's:
/// -1 and errno, or 0.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual int make_folder(const std::filesystem::path& path);
  virtual int open(const std::filesystem::path& path, int flags, unsigned mode);
  /// fallocate(2): reserves the space at once, or reports a full disk at once. EOPNOTSUPP where the
  /// file system does not support it; the C library would write every block once instead.
  virtual int allocate(int descriptor, std::uint64_t bytes);
  virtual ssize_t read(int descriptor, std::span<std::byte> bytes, std::uint64_t offset);
  virtual ssize_t write(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset);
  /// Starts asynchronous writeback; nothing depends on its success.
  virtual void start_writeback(int descriptor, std::uint64_t offset, std::uint64_t bytes);
  virtual int sync(int descriptor);
  virtual int close(int descriptor);
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to);
  /// Atomic exchange of two existing names.
  virtual int exchange(const std::filesystem::path& a, const std::filesystem::path& b);
  /// Removal of a folder with all its contents.
  virtual int remove_folder(const std::filesystem::path& path);

  /// System's real file system.
  static FileSystem& system();
};

}  // namespace trireme::checkpoint
