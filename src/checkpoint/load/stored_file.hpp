// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/digest.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/load.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/store/object_store.hpp"

#include "checkpoint/aligned_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::checkpoint {

/// Error of storage that refuses to read: not damage, for the contents may be intact.
/// ExitCode::checkpoint.
class UnreadableError : public base::Error {
  using base::Error::Error;
};

/// File of a committed step, read from the storage. Refusals that may be temporary (EIO, ESTALE,
/// too many open files, …) are tried again on a new descriptor for as long as `access.patience`;
/// then they are an UnreadableError, as are those of object stores, which try again themselves. Any
/// other is an Error (checkpoint). Symbolic links are refused.
class StoredBytes {
 public:
  StoredBytes(std::filesystem::path path, const ReadAccess& access);

  bool is_regular() const { return is_regular_; }
  std::uint64_t size() const { return size_; }
  /// Reads all bytes of the buffer. Threads may read at once.
  void read(std::span<std::byte> buffer, std::uint64_t offset) const;
  /// From here on read_directly() goes past the system's cache where the file system can: it costs
  /// no copy, and no page of a run is given up for it.
  void open_directly();
  /// Reads at least `needed` bytes of the buffer, which begins and ends, as the offset does, at
  /// multiples of OutputFile::direct_alignment.
  void read_directly(std::span<std::byte> buffer, std::uint64_t offset, std::size_t needed) const;

 private:
  base::File open() const;
  void open_object();
  void read_object(std::span<std::byte> buffer, std::uint64_t offset) const;

  std::filesystem::path path_;
  ReadAccess access_;
  base::File file_;
  base::File direct_;
  /// Location of a URL; else its store is null.
  store::Location object_;
  bool is_regular_ = false;
  std::uint64_t size_ = 0;
};

/// Text of STEP_FOLDER/manifest.json, unchecked except for its size and kind. Throws
/// UnreadableError for refusals of the storage, Error (checkpoint) for defects of the file.
std::string manifest_text_of(const std::filesystem::path& step_folder, const ReadAccess& access);

/// Manifest of a step folder, from its text. Failures (checkpoint): those of parse_manifest(); it
/// is of another step than the name of its folder says.
base::Result<Manifest> manifest_from(const std::filesystem::path& step_folder,
                                     std::string_view text);

/// Fault of a file that is not there, in an object store, or has another size.
std::string no_object_text(std::string_view path);
std::string size_text(std::string_view path, std::uint64_t bytes, std::uint64_t expected);

/// Path of file number `file` of a step. Throws Error (checkpoint) if it is behind a symbolic link.
std::filesystem::path path_of_file(const std::filesystem::path& step_folder,
                                   const Manifest& manifest, std::size_t file);

/// A file of a committed step, read by blocks once their checksums are there. The manifest outlives
/// it.
class BlockReader {
 public:
  /// Throws Error (checkpoint) when the file is missing, no regular file (a symbolic link, say), or
  /// of another size than in the manifest; UnreadableError when the storage refuses.
  BlockReader(const std::filesystem::path& step_folder, const Manifest& manifest, std::size_t file,
              const ReadAccess& access = {});

  /// Reads the checksums of the blocks, and the SHA-256 of each where the step has them; the damage
  /// if they are not those of the manifest. Throws as the constructor does.
  std::optional<Damage> load_checksums();
  const std::vector<std::uint32_t>& checksums() const { return checksums_; }
  /// The SHA-256 of the blocks; empty if the step has none.
  const std::vector<base::Sha256>& digests() const { return digests_; }
  std::uint64_t block_count() const { return block_count_; }
  std::uint64_t block_begin(std::uint64_t block) const { return block * block_bytes_; }
  std::uint64_t block_end(std::uint64_t block) const;
  /// From here on reads go past the system's cache where they can.
  void open_directly();

  /// Blocks of one read: long enough for storage to be fast, as several are under way at once, and
  /// short enough for the cache.
  static constexpr std::uint64_t max_run = 2;
  /// Takes the bytes of a block, and whether its checksum matches, and its SHA-256 if it has one.
  using Visit = std::function<void(std::uint64_t block, std::span<const std::byte>, bool matches)>;
  /// Reads so many blocks from `first` on, at most max_run, and visits each. What they hold lies in
  /// `memory` afterwards, and is returned. Throws as the constructor does.
  std::span<const std::byte> read_run(std::uint64_t first, std::uint64_t count,
                                      AlignedMemory& memory, const Visit& visit) const;
  /// Numbers of all blocks.
  std::vector<std::uint64_t> all_blocks() const;
  /// Reads and visits these blocks, which ascend, on so many threads that verify at once; 0: one
  /// per core, at most four. Throws as the constructor does, and what `visit` throws, after
  /// `on_failure`, for which visits that wait for others end.
  void read_all(std::span<const std::uint64_t> blocks, int threads, const Visit& visit,
                const std::function<void()>& on_failure = nullptr) const;

 private:
  const StoredFile* stored_;
  std::filesystem::path path_;
  std::uint64_t block_bytes_;
  std::uint64_t block_count_;
  std::vector<std::uint32_t> checksums_;
  std::vector<base::Sha256> digests_;
  StoredBytes bytes_;
};

/// Reads every byte of a file. Throws what BlockReader throws, and throw_damage() for the first
/// block that does not match.
void verify_file(const std::filesystem::path& step_folder, const Manifest& manifest,
                 std::size_t file, const ReadAccess& access);

/// Throws Error (checkpoint) for so many bytes of a file, from `begin` on, whose checksum does not
/// match.
[[noreturn]] void throw_damage(const std::filesystem::path& step_folder, const Manifest& manifest,
                               std::size_t file, std::uint64_t begin, std::size_t bytes);

/// Damage of bytes [begin, end) of a file whose checksum does not match.
Damage checksum_damage(const std::filesystem::path& step_folder, const Manifest& manifest,
                       std::size_t file, std::uint64_t begin, std::uint64_t end);

}  // namespace trireme::checkpoint
