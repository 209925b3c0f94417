// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/handle.hpp"
#include "trireme/base/result.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace trireme::base {

struct FileTraits {
  using raw_type = int;
  static int null() { return -1; }
  static const char* name() { return "file descriptor"; }
  static std::optional<std::string> close(int descriptor);
};
/// An open POSIX file.
using File = UniqueHandle<FileTraits>;

/// Opens with O_CLOEXEC; the failure names the path and the system's reason.
Result<File> open_file(const std::filesystem::path& path, int flags, unsigned mode = 0644,
                       ExitCode code = ExitCode::usage);

/// Writes or reads all bytes at an offset, in spite of short counts and signals; throws Error.
void write_at(const File& file, std::span<const std::byte> bytes, std::size_t offset,
              const std::filesystem::path& path, ExitCode code = ExitCode::checkpoint);
void read_at(const File& file, std::span<std::byte> bytes, std::size_t offset,
             const std::filesystem::path& path, ExitCode code = ExitCode::checkpoint);

/// A whole text file of at most `max_bytes`.
Result<std::string> read_text_file(const std::filesystem::path& path,
                                   ExitCode code = ExitCode::usage,
                                   std::size_t max_bytes = std::size_t{256} << 20);

/// Temporary file beside it, fsync, rename, fsync of the folder: readers see the old text or the
/// new one, never half of either. Throws Error.
void write_file_durably(const std::filesystem::path& path, std::string_view text,
                        ExitCode code = ExitCode::checkpoint);

/// fsync of a folder, so that renames inside it last.
void sync_folder(const std::filesystem::path& folder, ExitCode code = ExitCode::checkpoint);

/// Makes a folder and those above it that are missing. The result are the folders in which a name
/// is new, outermost first: until they are synced, a power cut may take the new folder and all in
/// it. One that may not be read cannot be synced and is left out.
std::vector<std::filesystem::path> make_folders(const std::filesystem::path& folder,
                                                std::error_code& error);
/// The same, synced.
Status make_folders_durably(const std::filesystem::path& folder,
                            ExitCode code = ExitCode::checkpoint);

}  // namespace trireme::base
