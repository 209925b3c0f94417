// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/file_system.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace trireme::checkpoint {

int FileSystem::make_folder(const std::filesystem::path& path) {
  return ::mkdir(path.c_str(), 0755);
}

int FileSystem::open(const std::filesystem::path& path, int flags, unsigned mode) {
  return ::open(path.c_str(), flags | O_CLOEXEC, mode);
}

int FileSystem::allocate(int descriptor, std::uint64_t bytes) {
  return ::fallocate(descriptor, 0, 0, static_cast<off_t>(bytes));
}

ssize_t FileSystem::read(int descriptor, std::span<std::byte> bytes, std::uint64_t offset) {
  return ::pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
}

ssize_t FileSystem::write(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset) {
  return ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
}

void FileSystem::start_writeback(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  ::sync_file_range(descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                    SYNC_FILE_RANGE_WRITE);
}

int FileSystem::sync(int descriptor) {
  return ::fsync(descriptor);
}

int FileSystem::close(int descriptor) {
  return ::close(descriptor);
}

int FileSystem::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  return ::rename(from.c_str(), to.c_str());
}

int FileSystem::exchange(const std::filesystem::path& a, const std::filesystem::path& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
}

int FileSystem::remove_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return 0;
  errno = error.value();
  return -1;
}

FileSystem& FileSystem::system() {
  static FileSystem real;
  return real;
}

}  // namespace trireme::checkpoint
