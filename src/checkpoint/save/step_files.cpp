// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/save/step_files.hpp"

#include "trireme/base/checksum.hpp"
#include "trireme/base/contract.hpp"
#include "trireme/base/digest.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/store/object_store.hpp"

#include "checkpoint/aligned_memory.hpp"
#include "checkpoint/hdf5/structure.hpp"
#include "checkpoint/load/stored_file.hpp"
#include "checkpoint/parallel.hpp"
#include "checkpoint/save/payload.hpp"
#include "checkpoint/save/step_output.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <utility>
#include <vector>

namespace trireme::checkpoint {
namespace {

constexpr auto block_bytes = Manifest::default_block_bytes;
/// Bytes of one write to a file: so few that they are in the cache for their checksum and the
/// write, and that files of a few blocks occupy all threads. Storage has several at a time.
constexpr auto file_write_bytes = 2 * block_bytes;
static_assert(store::part_bytes % block_bytes == 0);
/// Slices of tensors from which on master.h5 is left out.
constexpr std::size_t max_master_slices = std::size_t{1} << 16;

void throw_if_cancelled(const std::atomic<bool>* cancelled) {
  if (cancelled == nullptr || !*cancelled) return;
  throw base::Error(base::ExitCode::checkpoint, "the save was given up");
}

/// Writes the payload in groups of blocks.
class PayloadWriter {
 public:
  PayloadWriter(StepOutput& file, const Payload& payload, std::uint64_t group_bytes,
                BlockDigests digests)
      : file_(file),
        payload_(payload),
        bytes_(payload.bytes()),
        group_bytes_(group_bytes),
        checksums_((bytes_ + block_bytes - 1) / block_bytes, 0),
        digests_(digests == BlockDigests::none ? 0 : checksums_.size()) {}

  /// One of the threads calls `beside` first.
  void write(int threads, const std::atomic<bool>* cancelled, const std::function<void()>& beside) {
    const std::size_t others = beside ? 1 : 0;
    const auto write = [&](std::size_t index) {
      throw_if_cancelled(cancelled);
      if (index < others) return beside();
      const auto [begin, end] = bytes_of(index - others);
      write_group(values_of(begin, end), begin);
    };
    parallel_for(others + groups(), threads, write, [this] { file_.abandon(); });
  }

  /// The same with parts that lie on a device: one half of the staging memory is filled while the
  /// other is written.
  void write_from(device::Device& device) {
    constexpr auto copy_bytes = save_staging_bytes / 2;
    static_assert(copy_bytes % block_bytes == 0);
    const auto staging = device.staging(device::Purpose::optimizer, save_staging_bytes);
    const auto memory = bytes_in(staging.whole());
    std::array<std::future<void>, 2> writing;
    for (std::size_t copy = 0; copy * copy_bytes < bytes_; ++copy) {
      auto& slot = writing[copy % 2];
      if (slot.valid()) slot.get();
      const auto begin = copy * copy_bytes;
      const auto end = std::min(begin + copy_bytes, bytes_);
      const auto values = memory.subspan(copy % 2 * copy_bytes, end - begin);
      payload_.copy_from(device, begin, values);
      slot = std::async(std::launch::async, [this, values, at = begin] {
        try {
          write_group(values, at);
        } catch (...) {
          // The other slot may wait for this one's turn.
          file_.abandon();
          throw;
        }
      });
    }
    for (auto& slot : writing) {
      if (slot.valid()) slot.get();
    }
  }

  const std::vector<std::uint32_t>& checksums() const { return checksums_; }
  const std::vector<base::Sha256>& digests() const { return digests_; }

 private:
  std::size_t groups() const { return (bytes_ + group_bytes_ - 1) / group_bytes_; }
  std::pair<std::uint64_t, std::uint64_t> bytes_of(std::size_t group) const {
    return {group * group_bytes_, std::min((group + 1) * group_bytes_, bytes_)};
  }
  static std::span<std::byte> bytes_in(const device::Tensor& memory) {
    return {static_cast<std::byte*>(memory.raw()), memory.byte_count()};
  }

  void write_group(std::span<const std::byte> values, std::uint64_t begin) {
    const auto end = begin + values.size();
    for (auto at = begin; at < end; at += block_bytes) {
      const auto block = values.subspan(at - begin, std::min(block_bytes, end - at));
      checksums_[at / block_bytes] = base::crc32c(block);
      if (!digests_.empty()) digests_[at / block_bytes] = base::sha256(block);
    }
    if (payload_.covers(begin, end)) {
      file_.write(values, begin);
    } else {
      file_.write_sparse(values, begin);
    }
  }

  /// File bytes [begin, end): where they are, if one part has them, else put together.
  std::span<const std::byte> values_of(std::uint64_t begin, std::uint64_t end) const {
    if (const auto values = payload_.in_place(begin, end)) return *values;
    thread_local AlignedMemory memory;
    const std::span buffer(memory.at_least(group_bytes_), end - begin);
    payload_.copy(begin, buffer);
    return buffer;
  }

  StepOutput& file_;
  const Payload& payload_;
  std::uint64_t bytes_;
  std::uint64_t group_bytes_;
  std::vector<std::uint32_t> checksums_;
  std::vector<base::Sha256> digests_;
};

template <typename Sum>
std::span<const std::byte> bytes_of(const std::vector<Sum>& sums) {
  return std::as_bytes(std::span(sums));
}

/// Writes the sums of blocks behind so many bytes.
void write_sums(StepOutput& output, std::uint64_t bytes,
                const std::vector<std::uint32_t>& checksums,
                const std::vector<base::Sha256>& digests) {
  output.write(bytes_of(checksums), bytes);
  if (!digests.empty()) output.write(bytes_of(digests), bytes + bytes_of(checksums).size());
}

/// Length of a file with the sums of its blocks behind so many bytes.
std::uint64_t with_sums(std::uint64_t bytes, BlockDigests digests) {
  const auto of_block =
      Manifest::checksum_bytes + (digests == BlockDigests::none ? 0 : Manifest::digest_bytes);
  return bytes + (bytes + block_bytes - 1) / block_bytes * of_block;
}

std::string digest_text(std::span<const std::byte> bytes) {
  return base::hexadecimal(base::sha256(bytes));
}

/// Writes a file of a step: the payload, and behind it the sums of every byte before.
StoredFile write_file(const SaveOptions& options, const std::filesystem::path& path,
                      const Payload& payload, device::Device* device,
                      const std::function<void()>& beside = nullptr) {
  const auto bytes = payload.bytes();
  const auto output = create_output(options.files, path, with_sums(bytes, options.digests));
  const auto write_bytes = store::is_url(path) ? store::part_bytes : file_write_bytes;
  PayloadWriter writer(*output, payload, write_bytes, options.digests);
  if (device != nullptr && beside) beside();
  if (device != nullptr) {
    writer.write_from(*device);
  } else {
    writer.write(writing_threads(path, options.threads), options.cancelled, beside);
  }
  const auto& digests = writer.digests();
  write_sums(*output, bytes, writer.checksums(), digests);
  output->finish();
  StoredFile file{path.filename().string(), bytes, digest_text(bytes_of(writer.checksums()))};
  if (!digests.empty()) file.digests_sha256 = digest_text(bytes_of(digests));
  return file;
}

}  // namespace

std::string shard_name(std::size_t rank) {
  return base::format("shard-{:05}.h5", rank);
}

StoredFile write_shard(const SaveOptions& options, const std::filesystem::path& folder,
                       const SaveRequest& request, std::size_t rank,
                       const std::function<void()>& beside) {
  const Payload payload(hdf5::shard_structure(request.contents, rank),
                        payload_parts(request.contents, rank, request.shards));
  return write_file(options, folder / shard_name(rank), payload, request.device, beside);
}

void copy_file(const SaveOptions& options, const std::filesystem::path& folder,
               const std::filesystem::path& from, const Manifest& manifest, std::size_t file) {
  const auto& stored = manifest.files[file];
  BlockReader reader(from, manifest, file);
  if (const auto damage = reader.load_checksums()) {
    throw base::Error(base::ExitCode::checkpoint, damage->text);
  }
  reader.open_directly();
  const auto copy =
      create_output(options.files, folder / stored.name, manifest.stored_bytes(stored));
  reader.read_all(
      reader.all_blocks(), writing_threads(folder, options.threads),
      [&](std::uint64_t block, std::span<const std::byte> bytes, bool matches) {
        throw_if_cancelled(options.cancelled);
        const auto begin = reader.block_begin(block);
        if (!matches) throw_damage(from, manifest, file, begin, bytes.size());
        copy->write(bytes, begin);
      },
      [&] { copy->abandon(); });
  write_sums(*copy, stored.bytes, reader.checksums(), reader.digests());
  copy->finish();
}

StoredFile copy_shard(const SaveOptions& options, const std::filesystem::path& folder,
                      const std::filesystem::path& from, std::size_t rank) {
  const auto manifest = base::value_or_throw(read_manifest(from));
  const auto& files = manifest.files;
  const auto mine = std::find_if(files.begin(), files.end(), [&](const StoredFile& each) {
    return each.name == shard_name(rank);
  });
  TRIREME_EXPECT(mine != files.end(), "a rank has a file in each step");
  copy_file(options, folder, from, manifest, static_cast<std::size_t>(mine - files.begin()));
  return *mine;
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

StoredFile write_master(const SaveOptions& options, const std::filesystem::path& folder,
                        const Manifest& manifest) {
  const Payload payload(hdf5::master_structure(manifest), {});
  return write_file(options, folder / "master.h5", payload, nullptr);
}

}  // namespace trireme::checkpoint
