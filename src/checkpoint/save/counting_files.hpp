// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/file_system.hpp"

#include <atomic>
#include <cstdint>

namespace trireme::checkpoint {

/// A file system that counts the calls that have returned, from all threads: while one holds up a
/// call, the number stands still.
class CountingFiles final : public FileSystem {
 public:
  explicit CountingFiles(FileSystem& files) : files_(files) {}
  std::uint64_t count() const { return count_; }

  int make_folder(const std::filesystem::path& path) override {
    return counted(files_.make_folder(path));
  }
  int open(const std::filesystem::path& path, int flags, unsigned mode) override {
    return counted(files_.open(path, flags, mode));
  }
  int allocate(int descriptor, std::uint64_t bytes) override {
    return counted(files_.allocate(descriptor, bytes));
  }
  ssize_t read(int descriptor, std::span<std::byte> bytes, std::uint64_t offset) override {
    return counted(files_.read(descriptor, bytes, offset));
  }
  ssize_t write(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset) override {
    return counted(files_.write(descriptor, bytes, offset));
  }
  void start_writeback(int descriptor, std::uint64_t offset, std::uint64_t bytes) override {
    files_.start_writeback(descriptor, offset, bytes);
    ++count_;
  }
  int sync(int descriptor) override { return counted(files_.sync(descriptor)); }
  int close(int descriptor) override { return counted(files_.close(descriptor)); }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    return counted(files_.rename(from, to));
  }
  int exchange(const std::filesystem::path& a, const std::filesystem::path& b) override {
    return counted(files_.exchange(a, b));
  }
  int remove_folder(const std::filesystem::path& path) override {
    return counted(files_.remove_folder(path));
  }

 private:
  /// Leaves errno as the call has set it.
  template <typename T>
  T counted(T result) {
    ++count_;
    return result;
  }

  FileSystem& files_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace trireme::checkpoint
