#pragma once

#include "trireme/base/file.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trireme::checkpoint {

/// A file of a committed step, read by blocks. The manifest outlives it.
class BlockReader {
 public:
  /// Failure when the file is missing, no regular file (a symbolic link, say), or of another
  /// size than the manifest says.
  static base::Result<BlockReader> open(const std::filesystem::path& step_folder,
                                        const Manifest& manifest, std::size_t file);

  std::uint64_t block_count() const { return stored_->crc32c.size(); }
  std::uint64_t block_begin(std::uint64_t block) const { return block * block_bytes_; }
  std::uint64_t block_end(std::uint64_t block) const;
  /// Fills `buffer`; whether the checksum matches. Throws Error (checkpoint) when reading fails.
  bool read(std::uint64_t block, std::vector<std::byte>& buffer) const;

 private:
  BlockReader() = default;
  std::filesystem::path path_;
  base::File file_;
  const StoredFile* stored_ = nullptr;
  std::uint64_t block_bytes_ = 0;
};

/// Damage of bytes [begin, end) of a file whose checksum does not match.
Damage checksum_damage(const std::filesystem::path& step_folder, const Manifest& manifest,
                       std::size_t file, std::uint64_t begin, std::uint64_t end);

}  // namespace trireme::checkpoint
