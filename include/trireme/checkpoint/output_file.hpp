// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"
#include "trireme/checkpoint/file_system.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace trireme::checkpoint {

/// Error (checkpoint) "cannot <doing> '<path>': <reason> (<why it matters>); <what to do>".
[[noreturn]] void throw_storage_error(std::string_view doing, const std::filesystem::path& path,
                                      int error_number);

/// A file being written through a FileSystem. Every step is checked; a file whose sync failed is
/// never synced again, because the system may have dropped the pages and would report success.
class OutputFile {
 public:
  /// A new file; one of this name is refused.
  OutputFile(FileSystem& files, std::filesystem::path path);

  /// Alignment that direct writes need of memory, offset and length: a disk's sector, a page.
  static constexpr std::size_t direct_alignment = 4096;
  /// From here on, aligned writes go past the system's cache where the file system can: they cost
  /// no copy, and no page of the run is given up for them.
  void write_directly();
  void allocate(std::uint64_t bytes);
  /// Writes all bytes, in spite of short counts and signals, and has the system begin with what
  /// went to its cache. Threads may write different ranges.
  void write(std::span<const std::byte> bytes, std::uint64_t offset);
  /// fsync, then close; both checked.
  void finish();

 private:
  /// Bytes, from the first on, that one direct write may take; 0 where none may.
  std::size_t directly_writable(std::span<const std::byte> bytes, std::uint64_t offset) const;

  FileSystem& files_;
  std::filesystem::path path_;
  base::File file_;
  base::File direct_;
  /// The file system has refused a direct write.
  std::atomic<bool> direct_refused_{false};
};

/// Writes a new file with this text, synced and closed; its folder is not synced.
void write_text(FileSystem& files, const std::filesystem::path& path, std::string_view text);
void sync_folder(FileSystem& files, const std::filesystem::path& folder);

}  // namespace trireme::checkpoint
