// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"
#include "trireme/checkpoint/file_system.hpp"

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
  enum class Kind { fresh, existing };
  OutputFile(FileSystem& files, std::filesystem::path path, Kind kind);

  void allocate(std::uint64_t bytes);
  /// Writes all bytes, in spite of short counts and signals. Threads may write different ranges.
  void write(std::span<const std::byte> bytes, std::uint64_t offset);
  void start_writeback(std::uint64_t offset, std::uint64_t bytes);
  void read(std::span<std::byte> bytes, std::uint64_t offset) const;
  std::uint64_t size() const;
  /// fsync, then close; both checked.
  void finish();

 private:
  FileSystem& files_;
  std::filesystem::path path_;
  base::File file_;
};

/// Writes a new file with this text, synced and closed; its folder is not synced.
void write_text(FileSystem& files, const std::filesystem::path& path, std::string_view text);
void sync_folder(FileSystem& files, const std::filesystem::path& folder);

}  // namespace trireme::checkpoint
