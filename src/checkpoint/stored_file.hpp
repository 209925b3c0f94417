#pragma once

#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include "checkpoint/stored_bytes.hpp"

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
  /// Throws Error (checkpoint) when the file is missing, no regular file (a symbolic link, say), or
  /// of another size than the manifest says; UnreadableError when the storage refuses.
  BlockReader(const std::filesystem::path& step_folder, const Manifest& manifest, std::size_t file,
              const ReadAccess& access = {});

  std::uint64_t block_count() const { return stored_->crc32c.size(); }
  std::uint64_t block_begin(std::uint64_t block) const { return block * block_bytes_; }
  std::uint64_t block_end(std::uint64_t block) const;
  /// Fills `buffer`; whether the checksum matches. Throws as the constructor does.
  bool read(std::uint64_t block, std::vector<std::byte>& buffer) const;

 private:
  const StoredFile* stored_;
  std::uint64_t block_bytes_;
  StoredBytes bytes_;
};

/// Damage of bytes [begin, end) of a file whose checksum does not match.
Damage checksum_damage(const std::filesystem::path& step_folder, const Manifest& manifest,
                       std::size_t file, std::uint64_t begin, std::uint64_t end);

}  // namespace trireme::checkpoint
