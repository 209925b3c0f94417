// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/save/step_files.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/box_runs.hpp"
#include "trireme/checkpoint/output_file.hpp"

#include "checkpoint/checksum.hpp"
#include "checkpoint/hdf5/structure.hpp"
#include "checkpoint/parallel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace trireme::checkpoint {
namespace {

constexpr auto block_bytes = Manifest::default_block_bytes;
/// Number of blocks between starts of writeback.
constexpr std::uint64_t writeback_blocks = 16;

/// Writes the payload block by block; each block is in the cache when its checksum is computed
/// and when the system copies it.
class PayloadWriter {
 public:
  /// `offsets`: bytes of the file at which the pieces begin.
  PayloadWriter(OutputFile& file, const std::vector<ShardPiece>& pieces,
                const std::vector<std::uint64_t>& offsets)
      : file_(file), bytes_(file.size()) {
    for (std::size_t index = 0; index < pieces.size(); ++index) {
      const auto& piece = pieces[index];
      parts_.push_back({&piece, offsets[index],
                        BoxRuns(piece.box, piece.item->box, piece.item->data, piece.box)});
    }
    std::sort(parts_.begin(), parts_.end(),
              [](const Part& a, const Part& b) { return a.byte < b.byte; });
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
    const ShardPiece* piece;
    std::uint64_t byte;
    BoxRuns runs;
    std::uint64_t end() const { return byte + piece->bytes(); }
  };

  void write_block(std::uint64_t block) {
    const auto begin = block * block_bytes;
    const auto end = std::min(begin + block_bytes, bytes_);
    auto part = std::partition_point(parts_.begin(), parts_.end(),
                                     [begin](const Part& each) { return each.end() <= begin; });
    if (part != parts_.end() && part->byte <= begin && end <= part->end() &&
        part->runs.count() == 1) {
      const auto source =
          source_bytes(*part, part->runs.at(0).held).subspan(begin - part->byte, end - begin);
      checksums_[block] = crc32c(source);
      file_.write(source, begin);
      return;
    }
    thread_local std::vector<std::byte> buffer;
    buffer.resize(end - begin);
    const bool covered = part != parts_.end() && part->byte <= begin && end <= part->end();
    // Bytes of HDF5's own in the block are read back so that the checksum covers it.
    if (!covered) file_.read(buffer, begin);
    for (; part != parts_.end() && part->byte < end; ++part) copy(*part, begin, end, buffer);
    checksums_[block] = crc32c(buffer);
    file_.write(buffer, begin);
  }

  /// Bytes from an element of the tensor to the end of its run.
  static std::span<const std::byte> source_bytes(const Part& part, std::int64_t element) {
    const auto size = device::size_of(part.piece->dtype());
    const auto* data = static_cast<const std::byte*>(part.piece->item->data.raw());
    return {data + static_cast<std::size_t>(element) * size,
            static_cast<std::size_t>(part.runs.length()) * size};
  }

  /// Copies the part's bytes in file range [begin, end) into the buffer of that range.
  static void copy(const Part& part, std::uint64_t begin, std::uint64_t end,
                   std::span<std::byte> buffer) {
    const auto size = device::size_of(part.piece->dtype());
    const auto origin = part.byte;
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

std::uint64_t ShardPiece::bytes() const {
  return static_cast<std::uint64_t>(layout::element_count(box)) * device::size_of(dtype());
}

ShardRecord write_shard(FileSystem& files, const std::filesystem::path& folder, int writer,
                        const std::vector<ShardPiece>& pieces, int threads) {
  std::vector<HeldBox> boxes;
  for (const auto& piece : pieces) {
    boxes.push_back({piece.item->name, piece.item->shape, piece.dtype(), piece.box});
  }
  const auto path = folder / base::format("shard-{:05}.h5", writer);
  if (files.before_hdf5(path) != 0) throw_storage_error("write the structure of", path, errno);
  const auto offsets = hdf5::create_shard(path, boxes);
  OutputFile file(files, path, OutputFile::Kind::existing);
  file.allocate(file.size());
  PayloadWriter payload(file, pieces, offsets);
  ShardRecord record{{path.filename().string(), file.size(), payload.write(threads)}, {}};
  file.finish();
  for (std::size_t index = 0; index < boxes.size(); ++index) {
    record.boxes.push_back({std::move(boxes[index]), offsets[index]});
  }
  return record;
}

StoredFile write_master(FileSystem& files, const std::filesystem::path& folder,
                        const Manifest& manifest) {
  const auto path = folder / "master.h5";
  if (files.before_hdf5(path) != 0) throw_storage_error("write", path, errno);
  hdf5::create_master(path, manifest);
  OutputFile file(files, path, OutputFile::Kind::existing);
  const auto bytes = file.size();
  file.finish();
  return {path.filename().string(), bytes, block_checksums(path, bytes, manifest.block_bytes)};
}

}  // namespace trireme::checkpoint
