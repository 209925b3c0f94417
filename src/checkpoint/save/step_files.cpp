// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/save/step_files.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/output_file.hpp"

#include "checkpoint/checksum.hpp"
#include "checkpoint/hdf5/structure.hpp"
#include "checkpoint/parallel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace trireme::checkpoint {
namespace {

constexpr auto block_bytes = Manifest::default_block_bytes;
/// Number of blocks between starts of writeback.
constexpr std::uint64_t writeback_blocks = 16;

/// Slices of tensors from which on master.h5 is left out.
constexpr std::size_t max_master_slices = std::size_t{1} << 16;

/// Contiguous values and the byte of the file at which they begin.
struct Part {
  std::uint64_t byte;
  std::span<const std::byte> values;
  std::uint64_t end() const { return byte + values.size(); }
};

/// Writes the payload block by block; each block is in the cache when its checksum is computed
/// and when the system copies it.
class PayloadWriter {
 public:
  PayloadWriter(OutputFile& file, std::uint64_t bytes, std::vector<Part> parts)
      : file_(file), bytes_(bytes), parts_(std::move(parts)) {
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
  void write_block(std::uint64_t block) {
    const auto begin = block * block_bytes;
    const auto end = std::min(begin + block_bytes, bytes_);
    auto part = std::partition_point(parts_.begin(), parts_.end(),
                                     [begin](const Part& each) { return each.end() <= begin; });
    if (part != parts_.end() && part->byte <= begin && end <= part->end()) {
      const auto source = part->values.subspan(begin - part->byte, end - begin);
      checksums_[block] = crc32c(source);
      file_.write(source, begin);
      return;
    }
    thread_local std::vector<std::byte> buffer;
    buffer.resize(end - begin);
    // Bytes of HDF5's own in the block are read back so that the checksum covers them.
    if (!covered(part, begin, end)) file_.read(buffer, begin);
    for (; part != parts_.end() && part->byte < end; ++part) {
      const auto from = std::max(begin, part->byte);
      const auto to = std::min(end, part->end());
      std::memcpy(&buffer[from - begin], &part->values[from - part->byte], to - from);
    }
    checksums_[block] = crc32c(buffer);
    file_.write(buffer, begin);
  }

  /// True if parts from this one on hold every byte of the range.
  bool covered(std::vector<Part>::const_iterator part, std::uint64_t begin,
               std::uint64_t end) const {
    for (; begin < end; ++part) {
      if (part == parts_.end() || part->byte > begin) return false;
      begin = part->end();
    }
    return true;
  }

  OutputFile& file_;
  std::uint64_t bytes_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> checksums_;
};

std::span<const std::byte> bytes_of(const std::vector<std::uint32_t>& checksums) {
  return std::as_bytes(std::span(checksums));
}

/// Appends the checksums and closes the file, which has `bytes` before them.
StoredFile finish(OutputFile& file, std::string name, std::uint64_t bytes,
                  const std::vector<std::uint32_t>& checksums) {
  const auto tail = bytes_of(checksums);
  file.write(tail, bytes);
  file.finish();
  return {std::move(name), bytes,
          sha256_hex({reinterpret_cast<const char*>(tail.data()), tail.size()})};
}

std::vector<Part> parts_of(const Contents& contents, std::size_t rank,
                           std::span<const device::Tensor> shards) {
  std::vector<Part> parts;
  for (const auto& bucket : contents.buckets) {
    if (!bucket.files.position_of(rank)) continue;
    TRIREME_EXPECT(parts.size() < shards.size(), "a rank has the shard of each of its buckets");
    const auto& values = shards[parts.size()];
    TRIREME_EXPECT(values.dtype() == bucket.dtype && values.contiguous() &&
                       values.element_count() == bucket.shard_elements,
                   "a shard has its bucket's type and length");
    parts.push_back(
        {bucket.byte, {static_cast<const std::byte*>(values.raw()), values.byte_count()}});
  }
  TRIREME_EXPECT(parts.size() == shards.size(), "a rank has the shards of its buckets alone");
  return parts;
}

}  // namespace

std::string shard_name(std::size_t rank) {
  return base::format("shard-{:05}.h5", rank);
}

StoredFile write_shard(FileSystem& files, const std::filesystem::path& folder,
                       const Contents& contents, std::size_t rank,
                       std::span<const device::Tensor> shards, int threads) {
  auto parts = parts_of(contents, rank, shards);
  const auto path = folder / shard_name(rank);
  if (files.before_hdf5(path) != 0) throw_storage_error("write the structure of", path, errno);
  hdf5::create_shard(path, contents, rank);
  OutputFile file(files, path, OutputFile::Kind::existing);
  const auto bytes = file.size();
  const auto blocks = (bytes + block_bytes - 1) / block_bytes;
  file.allocate(bytes + blocks * Manifest::checksum_bytes);
  PayloadWriter payload(file, bytes, std::move(parts));
  return finish(file, path.filename().string(), bytes, payload.write(threads));
}

bool has_master(const Contents& contents) {
  std::size_t slices = 0;
  for (const auto& tensor : contents.tensors) {
    for (const auto& part : tensor.parts) {
      const auto at = contents.positions_of(part, 0, layout::element_count(part.box));
      slices += at.end - at.begin;
    }
  }
  return slices < max_master_slices;
}

StoredFile write_master(FileSystem& files, const std::filesystem::path& folder,
                        const Manifest& manifest) {
  const auto path = folder / "master.h5";
  if (files.before_hdf5(path) != 0) throw_storage_error("write", path, errno);
  hdf5::create_master(path, manifest);
  OutputFile file(files, path, OutputFile::Kind::existing);
  const auto bytes = file.size();
  return finish(file, path.filename().string(), bytes,
                block_checksums(path, bytes, manifest.block_bytes));
}

}  // namespace trireme::checkpoint
