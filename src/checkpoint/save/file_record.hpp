// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/manifest.hpp"
#include "trireme/comm/process_group.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace trireme::checkpoint {

/// Facts on a rank's file that another rank must know: few bytes, so that those of ten thousand
/// ranks are little.
struct FileRecord {
  std::uint64_t bytes = 0;
  std::array<char, 64> checksums_sha256{};
  /// Zeros where the file has none.
  std::array<char, 64> digests_sha256{};

  FileRecord() = default;
  explicit FileRecord(const StoredFile& file);
  StoredFile file_of(std::size_t rank) const;
  device::Tensor words() {
    static_assert(sizeof(FileRecord) % sizeof(std::int32_t) == 0);
    return {this, device::DType::i32, {sizeof(FileRecord) / sizeof(std::int32_t)}};
  }
};

/// Collective over the group. Host-blocking: yes. The files of all ranks, by rank, on rank 0, which
/// lists them in the manifest; nothing on the others.
std::vector<StoredFile> gather_files(const StoredFile& mine, comm::ProcessGroup& world);

}  // namespace trireme::checkpoint
