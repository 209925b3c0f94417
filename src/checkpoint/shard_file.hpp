#pragma once

#include "trireme/checkpoint/file_system.hpp"
#include "trireme/checkpoint/items.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme::checkpoint {

/// A box that this rank writes, and where it comes from.
struct Piece {
  const SaveItem* item = nullptr;
  layout::Box box;         ///< inside the item's box
  std::uint64_t byte = 0;  ///< where its elements begin in the file, once placed

  device::DType dtype() const { return item->data.dtype(); }
  std::uint64_t bytes() const;
};

/// Pieces smaller than this share one dataset per element type.
constexpr std::uint64_t small_piece_bytes = std::uint64_t{64} << 10;

/// Where in a shard's HDF5 structure a piece is found.
struct PieceDataset {
  std::string path;
  bool whole_dataset;           ///< the dataset is this box; else a run of a one-dimensional arena
  std::int64_t first_element;   ///< of the run
  std::int64_t arena_elements;  ///< length of the arena
};

/// One per piece, a pure function of the pieces' types and boxes (master.h5 needs it too).
struct PlacedBox {
  std::string tensor;
  device::DType dtype;
  layout::Box box;
};
std::vector<PieceDataset> place_in_datasets(const std::vector<PlacedBox>& boxes);

/// "shard-00003.h5".
std::string shard_name(int writer);

/// Writes and syncs one shard: structure by HDF5, payload beside it, checksums of every byte of
/// the file. Sets Piece::byte. Throws Error (checkpoint).
StoredFile write_shard(FileSystem& files, const std::filesystem::path& path,
                       std::vector<Piece>& pieces, int threads);

/// Checksums of every block of an existing file.
std::vector<std::uint32_t> block_checksums(const std::filesystem::path& path, std::uint64_t bytes,
                                           std::uint64_t block_bytes);

}  // namespace trireme::checkpoint
