// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/file_system.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace trireme::tests {

/// Counts the calls of a save over all its ranks and, at one of them, fails or ends the process
/// as a power cut would.
class FaultyFileSystem : public checkpoint::FileSystem {
 public:
  enum class At { nothing, kill, fail };

  FaultyFileSystem() = default;
  FaultyFileSystem(At what, int call, int error_number = EIO)
      : what_(what), at_(call), error_(error_number) {}

  /// The first call of this name fails.
  static FaultyFileSystem first(std::string call, int error_number) {
    return FaultyFileSystem(std::move(call), error_number);
  }

  /// As on file systems that cannot exchange two names.
  void forbid_exchange() { exchange_forbidden_ = true; }
  /// At most so many bytes are taken by one write, and every other call is interrupted first.
  void write_little(std::size_t bytes) { most_bytes_ = bytes; }

  /// The next so many calls of this name fail with that number; others go through.
  void refuse(std::string call, int times, int error_number) {
    const std::lock_guard lock(mutex_);
    refusals_[std::move(call)] = {times, error_number};
  }

  /// As on file systems that sync files alone.
  void lack_folder_sync(int error_number) { folder_sync_error_ = error_number; }

  int calls() const { return static_cast<int>(log_.size()); }
  /// Names of the calls so far: "sync", "write"…
  const std::vector<std::string>& log() const { return log_; }
  /// Bytes that were given to writes past the system's cache.
  std::uint64_t direct_bytes() const { return direct_bytes_; }
  /// A file was synced again after its sync had failed.
  bool synced_again() const { return synced_again_; }

  int make_folder(const std::filesystem::path& path) override {
    return strike("make_folder") ? -1 : FileSystem::make_folder(path);
  }
  int open(const std::filesystem::path& path, int flags, unsigned mode) override {
    if (strike("open")) return -1;
    const int descriptor = FileSystem::open(path, flags, mode);
    const std::lock_guard lock(mutex_);
    if ((flags & O_DIRECT) != 0) direct_.insert(descriptor);
    failed_syncs_.erase(descriptor);
    return descriptor;
  }
  int allocate(int descriptor, std::uint64_t bytes) override {
    return strike("allocate") ? -1 : FileSystem::allocate(descriptor, bytes);
  }
  ssize_t read(int descriptor, std::span<std::byte> bytes, std::uint64_t offset) override {
    return strike("read") ? -1 : FileSystem::read(descriptor, bytes, offset);
  }
  ssize_t write(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset) override {
    if (strike("write")) return -1;
    {
      const std::lock_guard lock(mutex_);
      if (direct_.contains(descriptor)) direct_bytes_ += bytes.size();
    }
    if (most_bytes_ == 0) return FileSystem::write(descriptor, bytes, offset);
    {
      const std::lock_guard lock(mutex_);
      interrupted_ = !interrupted_;
      if (interrupted_) {
        errno = EINTR;
        return -1;
      }
    }
    return FileSystem::write(descriptor, bytes.first(std::min(bytes.size(), most_bytes_)), offset);
  }
  int sync(int descriptor) override {
    struct stat facts {};
    if (folder_sync_error_ != 0 && ::fstat(descriptor, &facts) == 0 && S_ISDIR(facts.st_mode)) {
      errno = folder_sync_error_;
      return -1;
    }
    {
      const std::lock_guard lock(mutex_);
      if (failed_syncs_.contains(descriptor)) synced_again_ = true;
    }
    if (!strike("sync")) return FileSystem::sync(descriptor);
    const std::lock_guard lock(mutex_);
    failed_syncs_.insert(descriptor);
    return -1;
  }
  int close(int descriptor) override {
    // Like the system's, a close that fails has closed all the same.
    const bool struck = strike("close");
    const int result = FileSystem::close(descriptor);
    return struck ? (errno = error_, -1) : result;
  }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    return strike("rename") ? -1 : FileSystem::rename(from, to);
  }
  int exchange(const std::filesystem::path& a, const std::filesystem::path& b) override {
    if (strike("exchange")) return -1;
    if (!exchange_forbidden_) return FileSystem::exchange(a, b);
    errno = EINVAL;
    return -1;
  }
  int remove_folder(const std::filesystem::path& path) override {
    return strike("remove_folder") ? -1 : FileSystem::remove_folder(path);
  }

 private:
  FaultyFileSystem(std::string call, int error_number)
      : what_(At::fail), error_(error_number), first_(std::move(call)) {}

  bool strike(const char* call) {
    const std::lock_guard lock(mutex_);
    log_.emplace_back(call);
    if (const auto refusal = refusals_.find(call);
        refusal != refusals_.end() && refusal->second.times > 0) {
      --refusal->second.times;
      errno = refusal->second.error_number;
      return true;
    }
    if (call == first_) {
      at_ = static_cast<int>(log_.size());
      first_.clear();
    }
    if (static_cast<int>(log_.size()) != at_) return false;
    if (what_ == At::kill) ::kill(::getpid(), SIGKILL);
    if (what_ == At::fail) errno = error_;
    return what_ == At::fail;
  }

  struct Refusal {
    int times = 0;
    int error_number = 0;
  };

  std::mutex mutex_;
  std::map<std::string, Refusal> refusals_;
  At what_ = At::nothing;
  int at_ = 0;
  int error_ = EIO;
  std::string first_;
  int folder_sync_error_ = 0;
  bool exchange_forbidden_ = false;
  bool interrupted_ = false;
  std::size_t most_bytes_ = 0;
  bool synced_again_ = false;
  std::vector<std::string> log_;
  std::set<int> failed_syncs_;
  std::set<int> direct_;
  std::uint64_t direct_bytes_ = 0;
};

}  // namespace trireme::tests
