// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/checkpoint/contents.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::checkpoint {

/// A file of a step folder; every byte of it belongs to one block of Manifest::block_bytes. Behind
/// the blocks lie their checksums, 4 bytes each, little-endian.
struct StoredFile {
  std::string name;
  std::uint64_t bytes = 0;            ///< of all blocks, without the checksums behind them
  std::string checksums_sha256 = {};  ///< of those checksums
  /// Checksums themselves, only in manifests of version 1, whose files end with their blocks.
  std::vector<std::uint32_t> crc32c = {};
};

/// Index of one checkpoint. read_manifest returns checked ones: digest, limits, every box inside
/// its tensor, every byte range inside its file, no overlap, no gap.
struct Manifest {
  /// Version that is written; all from 1 on are read.
  static constexpr std::int64_t newest_version = 2;
  /// Length of manifest.json: readers refuse longer ones, and writers do not commit them.
  static constexpr std::uint64_t max_text_bytes = std::uint64_t{256} << 20;
  static constexpr std::uint64_t default_block_bytes = std::uint64_t{1} << 20;

  /// Version that was read.
  std::int64_t version = newest_version;
  std::int64_t step = 0;
  std::uint64_t tokens = 0;
  std::string tool_version;
  /// State that the trainer needs beside tensors: configuration with origins, mesh, random-stream
  /// counters, data cursor.
  base::Json state;
  std::uint64_t block_bytes = default_block_bytes;
  std::vector<StoredFile> files;
  Contents contents;

  std::uint64_t block_count(const StoredFile& file) const {
    return file.bytes / block_bytes + static_cast<std::uint64_t>(file.bytes % block_bytes != 0);
  }
  /// Length of the file on the storage.
  std::uint64_t stored_bytes(const StoredFile& file) const {
    return file.bytes + (file.crc32c.empty() ? checksum_bytes * block_count(file) : 0);
  }
  static constexpr std::uint64_t checksum_bytes = 4;
};

/// The text of manifest.json in the newest version, its last member the SHA-256 of all bytes before
/// it. With a key the member before that is a signature (signature.hpp).
std::string manifest_text(const Manifest& manifest, std::string_view key = {});

/// Manifest from untrusted text. The digest is compared before anything is parsed. Failures
/// (checkpoint) name `source`.
base::Result<Manifest> parse_manifest(std::string_view text, std::string_view source);

/// Reads STEP_FOLDER/manifest.json; symbolic links and files above 256 MiB are refused.
base::Result<Manifest> read_manifest(const std::filesystem::path& step_folder);

}  // namespace trireme::checkpoint
