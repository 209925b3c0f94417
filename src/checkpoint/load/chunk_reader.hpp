// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/load.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include "checkpoint/aligned_memory.hpp"
#include "checkpoint/load/stored_file.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace trireme::checkpoint {

/// Neighbouring blocks of a file, which one read takes.
struct BlockRun {
  std::uint64_t chunk = 0;
  std::size_t file = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  /// Other ranks want values of it: it goes to this byte of the chunk's memory.
  bool is_shared = false;
  std::uint64_t offset = 0;
};

/// Threads that read and verify runs of blocks one after the other, chunks ahead of the one in use,
/// so that the disk is never without a read to do.
class ChunkReader {
 public:
  /// Takes bytes of a file from `begin` on, verified and still in the cache. Threads call it at
  /// once.
  using Deliver =
      std::function<void(std::size_t file, std::uint64_t begin, std::span<const std::byte>)>;

  /// `runs` ascend by chunk; the memory of each chunk has `chunk_bytes`. Folder and manifest
  /// outlive it.
  ChunkReader(const std::filesystem::path& step_folder, const Manifest& manifest,
              const LoadOptions& options, std::vector<BlockRun> runs, std::uint64_t chunk_bytes,
              Deliver deliver);
  /// Waits for the reads under way.
  ~ChunkReader();
  ChunkReader(const ChunkReader&) = delete;
  ChunkReader& operator=(const ChunkReader&) = delete;

  /// Memory of the next chunk, with its shared runs, once all its runs are delivered; after a
  /// failure, with anything. What the chunk before had is overwritten from then on.
  const std::byte* next();
  /// Throws what the first read that failed has thrown: Error (checkpoint).
  void throw_failure() const;
  std::uint64_t read_bytes() const { return read_bytes_; }

 private:
  /// Chunks in memory: one in use, the others being read.
  static constexpr std::uint64_t memories = 4;

  void read_runs();
  void take(const BlockReader& reader, std::size_t file, std::uint64_t block,
            std::span<const std::byte> bytes, bool matches);
  std::shared_ptr<const BlockReader> opened(std::size_t file);
  /// True when all runs of the chunk are read, or were given up.
  bool is_read(std::uint64_t chunk) const;

  const std::filesystem::path& folder_;
  const Manifest& manifest_;
  ReadAccess access_;
  std::vector<BlockRun> runs_;
  std::uint64_t chunk_bytes_;
  Deliver deliver_;
  std::array<AlignedMemory, memories> memories_;
  std::atomic<std::uint64_t> read_bytes_{0};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  /// First run that no thread has taken.
  std::size_t next_run_ = 0;
  /// Runs of each chunk that are not read yet.
  std::map<std::uint64_t, std::size_t> unread_;
  /// Chunk in use, plus one.
  std::uint64_t given_ = 0;
  std::exception_ptr failure_;
  std::mutex files_mutex_;
  /// Files in use: runs go from one to the next.
  std::map<std::size_t, std::weak_ptr<const BlockReader>> files_;
  std::vector<std::jthread> threads_;
};

}  // namespace trireme::checkpoint
