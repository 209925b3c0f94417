#pragma once

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/checkpoint/file_system.hpp"
#include "trireme/checkpoint/load.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

namespace trireme::checkpoint {

/// The storage does not give what it has: no damage, for nothing is known to be wrong with what it
/// holds. ExitCode::checkpoint.
class UnreadableError : public base::Error {
  using base::Error::Error;
};

/// A file of a committed step as the storage gives it. What may pass (EIO, ESTALE, too many open
/// files, …) is tried again on a new descriptor for as long as `access.patience`; then it is an
/// UnreadableError. Anything else is an Error (checkpoint). Symbolic links are refused.
class StoredBytes {
 public:
  StoredBytes(std::filesystem::path path, const ReadAccess& access);

  bool is_regular() const { return is_regular_; }
  std::uint64_t size() const { return size_; }
  /// All bytes of the buffer. Threads may read at once.
  void read(std::span<std::byte> buffer, std::uint64_t offset) const;

 private:
  base::File open() const;

  std::filesystem::path path_;
  ReadAccess access_;
  base::File file_;
  bool is_regular_ = false;
  std::uint64_t size_ = 0;
};

}  // namespace trireme::checkpoint
