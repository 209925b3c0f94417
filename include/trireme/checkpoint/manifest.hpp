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
/// the blocks lie their checksums, 4 bytes each, little-endian, and behind those, in a step that is
/// signed, the SHA-256 of each block.
struct StoredFile {
  std::string name;
  std::uint64_t bytes = 0;            ///< of all blocks, without the checksums behind them
  std::string checksums_sha256 = {};  ///< of those checksums
  /// Checksums themselves, only in manifests of version 1, whose files end with their blocks.
  std::vector<std::uint32_t> crc32c = {};
  std::string digests_sha256 = {};  ///< of the blocks' SHA-256; empty: there are none
};

/// Index of one checkpoint. read_manifest returns checked ones: digest, limits, every box inside
/// its tensor, every byte range inside its file, no overlap, no gap.
struct Manifest {
  /// Newest version; all from 1 on are read, and the oldest is written that says all of a step: 2,
  /// or 3 of files that are in a folder of their own or have a SHA-256 of each block.
  static constexpr std::int64_t newest_version = 3;
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
  /// Folder of the files in the step's, in an object store, where each save writes to one of its
  /// own; empty: they are in the step's folder itself.
  std::string folder = {};
  std::vector<StoredFile> files;
  Contents contents;

  /// Where the files of a step are.
  std::filesystem::path files_in(const std::filesystem::path& step_folder) const {
    return folder.empty() ? step_folder : step_folder / folder;
  }
  std::uint64_t block_count(const StoredFile& file) const {
    return file.bytes / block_bytes + static_cast<std::uint64_t>(file.bytes % block_bytes != 0);
  }
  /// Length of the file on the storage.
  std::uint64_t stored_bytes(const StoredFile& file) const {
    return file.bytes + (file.crc32c.empty() ? checksum_bytes * block_count(file) : 0) +
           (file.digests_sha256.empty() ? 0 : digest_bytes * block_count(file));
  }
  /// True if every file has a SHA-256 of each block: a signature covers all values then.
  bool has_digests() const;
  static constexpr std::uint64_t checksum_bytes = 4;
  static constexpr std::uint64_t digest_bytes = 32;
};

/// The text of manifest.json, its last member the SHA-256 of all bytes before
/// it. With a key the member before that is a signature (signature.hpp).
std::string manifest_text(const Manifest& manifest, std::string_view key = {});

/// Manifest from untrusted text. The digest is compared before anything is parsed. Failures
/// (checkpoint) name `source`.
base::Result<Manifest> parse_manifest(std::string_view text, std::string_view source);

/// Reads STEP_FOLDER/manifest.json; symbolic links and files above 256 MiB are refused.
base::Result<Manifest> read_manifest(const std::filesystem::path& step_folder);

}  // namespace trireme::checkpoint
