// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/device/dtype.hpp"
#include "trireme/layout/box.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::checkpoint {

/// A box of a tensor and where its elements lie: contiguous, row-major, little-endian.
struct StoredBox {
  layout::Box box;
  std::size_t file = 0;    ///< index into Manifest::files
  std::uint64_t byte = 0;  ///< of the first element, from the file's start
};

/// A logical tensor. Its boxes cover it and do not overlap.
struct StoredTensor {
  std::string name;
  device::DType dtype = device::DType::f32;
  layout::Shape shape;
  std::vector<StoredBox> boxes;
};

/// A file of a step folder; every byte of it belongs to one block of Manifest::block_bytes.
struct StoredFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> crc32c;  ///< one per block
};

/// Content of one checkpoint. read_manifest returns checked ones: digest, limits, every box inside
/// its tensor, every byte range inside its file, no overlap, no gap.
struct Manifest {
  static constexpr std::int64_t format_version = 1;
  /// Length of manifest.json: readers refuse longer ones, and writers do not commit them.
  static constexpr std::uint64_t max_text_bytes = std::uint64_t{256} << 20;
  static constexpr std::uint64_t default_block_bytes = std::uint64_t{1} << 20;

  std::int64_t step = 0;
  std::uint64_t tokens = 0;
  std::string tool_version;
  /// State that the trainer needs beside tensors: configuration with origins, mesh, random-stream
  /// counters, data cursor.
  base::Json state;
  std::uint64_t block_bytes = default_block_bytes;
  std::vector<StoredFile> files;
  std::vector<StoredTensor> tensors;  ///< ascending by name

  /// Null when there is none of this name.
  const StoredTensor* find(std::string_view name) const;
  /// Bytes of all tensors together.
  std::uint64_t payload_bytes() const;
};

/// The text of manifest.json, its last member the SHA-256 of all bytes before it.
std::string manifest_text(const Manifest& manifest);

/// Manifest from untrusted text. The digest is compared before anything is parsed. Failures
/// (checkpoint) name `source`.
base::Result<Manifest> parse_manifest(std::string_view text, std::string_view source);

/// Reads STEP_FOLDER/manifest.json; symbolic links and files above 256 MiB are refused.
base::Result<Manifest> read_manifest(const std::filesystem::path& step_folder);

}  // namespace trireme::checkpoint
