// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/file_system.hpp"
#include "trireme/checkpoint/items.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include "checkpoint/save/records.hpp"

#include <filesystem>
#include <vector>

namespace trireme::checkpoint {

/// A box that this rank writes, and the item that holds its elements.
struct ShardPiece {
  const SaveItem* item = nullptr;
  layout::Box box;  ///< inside the item's box

  device::DType dtype() const { return item->data.dtype(); }
  std::uint64_t bytes() const;
};

/// Writes and syncs FOLDER/shard-NNNNN.h5: structure by HDF5, payload beside it, checksums of
/// every byte of the file. Throws Error (checkpoint).
ShardRecord write_shard(FileSystem& files, const std::filesystem::path& folder, int writer,
                        const std::vector<ShardPiece>& pieces, int threads);

/// Writes and syncs FOLDER/master.h5: every tensor at its global shape, virtually. For people and
/// tools; nothing here ever reads it. `manifest` holds the shards and tensors already. Throws Error
/// (checkpoint).
StoredFile write_master(FileSystem& files, const std::filesystem::path& folder,
                        const Manifest& manifest);

}  // namespace trireme::checkpoint
