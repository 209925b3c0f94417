#include "checkpoint/shard_file.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "checkpoint/box_runs.hpp"
#include "checkpoint/checksum.hpp"
#include "checkpoint/hdf5.hpp"
#include "checkpoint/output_file.hpp"
#include "checkpoint/parallel.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>

namespace trireme::checkpoint {
namespace {

constexpr auto block_bytes = Manifest::default_block_bytes;
/// How many blocks are written before the system is asked to begin writing back.
constexpr std::uint64_t writeback_blocks = 16;

std::vector<PlacedBox> placed_boxes(const std::vector<Piece>& pieces) {
  std::vector<PlacedBox> boxes;
  for (const auto& piece : pieces) boxes.push_back({piece.item->name, piece.dtype(), piece.box});
  return boxes;
}

std::string arena_path(device::DType dtype) {
  return base::format("small_tensors/{}", device::name(dtype));
}

/// Where each dataset of the open file begins, by path.
using Offsets = std::map<std::string, std::uint64_t>;

void create_dataset(const hdf5::File& file, const Piece& piece, const PieceDataset& place,
                    Offsets& offsets) {
  if (offsets.contains(place.path)) return;
  const auto type = hdf5::element_type(piece.dtype());
  auto dataset = hdf5::create_contiguous(
      file, place.path, type,
      place.whole_dataset ? piece.box.length : layout::Shape{place.arena_elements});
  if (place.whole_dataset) {
    hdf5::write_attribute(dataset, "box_offset", piece.box.offset);
    hdf5::write_attribute(dataset, "tensor_shape", piece.item->shape);
  }
  offsets[place.path] = hdf5::storage_offset(dataset);
  base::success_or_throw(dataset.close());
}

void write_tables(const hdf5::File& file, const std::vector<Piece>& pieces,
                  const std::vector<PieceDataset>& places) {
  std::map<std::string, std::vector<hdf5::TableRow>> tables;
  for (std::size_t index = 0; index < pieces.size(); ++index) {
    if (places[index].whole_dataset) continue;
    const auto& item = *pieces[index].item;
    tables[places[index].path].push_back(
        {item.name, places[index].first_element, item.shape, pieces[index].box});
  }
  for (const auto& [path, rows] : tables) hdf5::write_table(file, path + "_table", rows);
}

/// HDF5 has been seen to report success on a full disk: its word is not the only one.
void check_structure(const std::filesystem::path& path, const Offsets& expected,
                     std::uint64_t file_bytes) {
  auto file = hdf5::open_file(path);
  for (const auto& [name, offset] : expected) {
    auto dataset = hdf5::open_dataset(file, name);
    if (hdf5::storage_offset(dataset) != offset || offset % hdf5::alignment_bytes != 0 ||
        hdf5::storage_bytes(dataset) > file_bytes - offset) {
      throw base::Error(
          base::ExitCode::checkpoint,
          base::format("'{}': dataset '{}' is not where HDF5 put it (the disk may be full)",
                       path.string(), name));
    }
    base::success_or_throw(dataset.close());
  }
  base::success_or_throw(file.close());
}

/// Makes the file with all its datasets, empty, and tells each piece its place.
Offsets write_structure(const std::filesystem::path& path, std::vector<Piece>& pieces) {
  const auto places = place_in_datasets(placed_boxes(pieces));
  auto file = hdf5::create_file(path);
  Offsets offsets;
  for (std::size_t index = 0; index < pieces.size(); ++index) {
    create_dataset(file, pieces[index], places[index], offsets);
  }
  write_tables(file, pieces, places);
  base::success_or_throw(file.close());
  for (std::size_t index = 0; index < pieces.size(); ++index) {
    pieces[index].byte =
        offsets[places[index].path] + static_cast<std::uint64_t>(places[index].first_element) *
                                          device::size_of(pieces[index].dtype());
  }
  return offsets;
}

/// Writes the payload block by block; each block is in the cache when its checksum is computed
/// and when the system copies it.
class PayloadWriter {
 public:
  PayloadWriter(OutputFile& file, const std::vector<Piece>& pieces)
      : file_(file), bytes_(file.size()) {
    for (const auto& piece : pieces) {
      parts_.push_back({&piece, BoxRuns(piece.box, piece.item->box, piece.item->data, piece.box)});
    }
    std::sort(parts_.begin(), parts_.end(),
              [](const Part& a, const Part& b) { return a.piece->byte < b.piece->byte; });
  }

  std::vector<std::uint32_t> write(int threads) {
    const auto blocks = (bytes_ + block_bytes - 1) / block_bytes;
    checksums_.assign(blocks, 0);
    const auto groups = (blocks + writeback_blocks - 1) / writeback_blocks;
    parallel_for(groups, threads, [&](std::size_t group) {
      const auto first = group * writeback_blocks;
      const auto end = std::min<std::uint64_t>(first + writeback_blocks, blocks);
      for (auto block = first; block < end; ++block) write_block(block);
      file_.start_writeback(first * block_bytes, (end - first) * block_bytes);
    });
    return checksums_;
  }

 private:
  struct Part {
    const Piece* piece;
    BoxRuns runs;
    std::uint64_t end() const { return piece->byte + piece->bytes(); }
  };

  void write_block(std::uint64_t block) {
    const auto begin = block * block_bytes;
    const auto end = std::min(begin + block_bytes, bytes_);
    auto part = std::partition_point(parts_.begin(), parts_.end(),
                                     [begin](const Part& each) { return each.end() <= begin; });
    if (part != parts_.end() && part->piece->byte <= begin && end <= part->end() &&
        part->runs.count() == 1) {
      const auto source = source_bytes(*part, part->runs.at(0).held)
                              .subspan(begin - part->piece->byte, end - begin);
      checksums_[block] = crc32c(source);
      file_.write(source, begin);
      return;
    }
    thread_local std::vector<std::byte> buffer;
    buffer.resize(end - begin);
    const bool covered = part != parts_.end() && part->piece->byte <= begin && end <= part->end();
    // The rest of the block is HDF5's own; it is read back so that the checksum covers it.
    if (!covered) file_.read(buffer, begin);
    for (; part != parts_.end() && part->piece->byte < end; ++part) copy(*part, begin, end, buffer);
    checksums_[block] = crc32c(buffer);
    file_.write(buffer, begin);
  }

  /// From an element of the tensor to the end of its run.
  static std::span<const std::byte> source_bytes(const Part& part, std::int64_t element) {
    const auto size = device::size_of(part.piece->dtype());
    const auto* data = static_cast<const std::byte*>(part.piece->item->data.raw());
    return {data + static_cast<std::size_t>(element) * size,
            static_cast<std::size_t>(part.runs.length()) * size};
  }

  /// Copies what of the part lies in file bytes [begin, end) into the buffer of that range.
  static void copy(const Part& part, std::uint64_t begin, std::uint64_t end,
                   std::span<std::byte> buffer) {
    const auto size = device::size_of(part.piece->dtype());
    const auto origin = part.piece->byte;
    const auto from = begin > origin ? (begin - origin) / size : 0;
    for (auto index = part.runs.first_ending_after(static_cast<std::int64_t>(from));
         index < part.runs.count(); ++index) {
      const auto run = part.runs.at(index);
      const auto run_begin = origin + static_cast<std::uint64_t>(run.stored) * size;
      if (run_begin >= end) return;
      const auto source = source_bytes(part, run.held);
      const auto skip = begin > run_begin ? begin - run_begin : 0;
      const auto count = std::min(run_begin + source.size(), end) - (run_begin + skip);
      std::memcpy(&buffer[run_begin + skip - begin], &source[skip], count);
    }
  }

  OutputFile& file_;
  std::uint64_t bytes_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> checksums_;
};

}  // namespace

std::uint64_t Piece::bytes() const {
  return static_cast<std::uint64_t>(layout::element_count(box)) * device::size_of(dtype());
}

std::vector<PieceDataset> place_in_datasets(const std::vector<PlacedBox>& boxes) {
  std::vector<PieceDataset> places;
  std::map<device::DType, std::int64_t> arenas;
  for (const auto& [tensor, dtype, box] : boxes) {
    const auto elements = layout::element_count(box);
    if (static_cast<std::uint64_t>(elements) * device::size_of(dtype) < small_piece_bytes) {
      places.push_back({arena_path(dtype), false, arenas[dtype], 0});
      arenas[dtype] += elements;
    } else {
      places.push_back({base::format("{}/at_{}", tensor, base::join(box.offset, "_")), true, 0, 0});
    }
  }
  for (std::size_t index = 0; index < boxes.size(); ++index) {
    if (places[index].whole_dataset) continue;
    // At least as large as what HDF5 aligns, so that every dataset begins at a block.
    const auto least = hdf5::alignment_threshold_bytes / device::size_of(boxes[index].dtype);
    places[index].arena_elements =
        std::max(arenas[boxes[index].dtype], static_cast<std::int64_t>(least));
  }
  return places;
}

std::string shard_name(int writer) {
  return base::format("shard-{:05}.h5", writer);
}

StoredFile write_shard(FileSystem& files, const std::filesystem::path& path,
                       std::vector<Piece>& pieces, int threads) {
  if (files.before_hdf5(path) != 0) throw_storage_error("write the structure of", path, errno);
  const auto offsets = write_structure(path, pieces);
  OutputFile file(files, path, OutputFile::Kind::existing);
  const auto bytes = file.size();
  check_structure(path, offsets, bytes);
  file.allocate(bytes);
  StoredFile stored{path.filename().string(), bytes, PayloadWriter(file, pieces).write(threads)};
  file.finish();
  return stored;
}

std::vector<std::uint32_t> block_checksums(const std::filesystem::path& path, std::uint64_t bytes,
                                           std::uint64_t size) {
  const auto file =
      base::value_or_throw(base::open_file(path, 0 /* O_RDONLY */, 0, base::ExitCode::checkpoint));
  std::vector<std::uint32_t> checksums;
  std::vector<std::byte> buffer;
  for (std::uint64_t at = 0; at < bytes; at += size) {
    buffer.resize(std::min(size, bytes - at));
    base::read_at(file, buffer, at, path);
    checksums.push_back(crc32c(buffer));
  }
  return checksums;
}

}  // namespace trireme::checkpoint
