// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/measure_disk.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/checkpoint/file_system.hpp"
#include "trireme/comm/agree.hpp"

#include "checkpoint/parallel.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <system_error>

namespace trireme::checkpoint {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;
/// Blocks between writebacks, as in the writer of shards.
constexpr std::uint64_t writeback_blocks = 16;
/// Alignment of memory and offsets for direct access: a disk's sector.
constexpr std::size_t sector_bytes = 4096;

struct BlockFree {
  void operator()(std::byte* block) const { ::operator delete (block, std::align_val_t{4096}); }
};

/// One block of random bytes that begins with its number and the round's.
class Block {
 public:
  Block()
      : bytes_(
            static_cast<std::byte*>(::operator new (block_bytes, std::align_val_t{sector_bytes}))) {
    // Incompressible data, which a storage system cannot shrink.
    for (std::size_t at = 0; at < block_bytes; at += 16) {
      const auto random = base::philox(1, 2, at);
      std::memcpy(bytes_.get() + at, random.data(), 16);
    }
  }
  void stamp(std::uint64_t index, std::uint64_t round) const {
    const std::uint64_t words[2] = {index, round};
    std::memcpy(bytes_.get(), words, sizeof words);
  }
  std::span<std::byte> bytes() const { return {bytes_.get(), block_bytes}; }
  bool operator==(const Block& other) const {
    return std::memcmp(bytes_.get(), other.bytes_.get(), block_bytes) == 0;
  }

 private:
  std::unique_ptr<std::byte, BlockFree> bytes_;
};

/// A file that is gone when its measurement is, whatever happens.
class TrialFile {
 public:
  TrialFile(const DiskOptions& options, comm::ProcessGroup& world)
      : path_(options.folder /
              base::format("trireme-bench-io.r{:04}.{}", world.rank(), ::getpid())),
        threads_(thread_count(options.threads)),
        blocks_(std::max<std::uint64_t>(
            1, options.bytes / block_bytes / static_cast<std::uint64_t>(world.size()))) {}
  TrialFile(const TrialFile&) = delete;
  TrialFile& operator=(const TrialFile&) = delete;
  ~TrialFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  std::uint64_t bytes() const { return blocks_ * block_bytes; }

  /// True if the file system supports this access.
  bool takes(DiskAccess access) const {
    const int flags = O_WRONLY | O_CREAT;
    auto file = base::open_file(path_, flags, 0644, base::ExitCode::checkpoint);
    base::value_or_throw(std::move(file));
    if (access == DiskAccess::buffered) return true;
    const int descriptor = ::open(path_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
    if (descriptor >= 0) ::close(descriptor);
    return descriptor >= 0;
  }

  /// A new file, space reserved, all blocks, fsync.
  void write(DiskAccess access, std::uint64_t round) const {
    std::filesystem::remove(path_);
    const auto file = open(access, O_WRONLY | O_CREAT | O_EXCL);
    reserve(file);
    const auto groups = (blocks_ + writeback_blocks - 1) / writeback_blocks;
    parallel_for(groups, threads_, [&](std::size_t group) {
      thread_local const Block block;
      const auto first = group * writeback_blocks;
      const auto end = std::min(first + writeback_blocks, blocks_);
      for (auto index = first; index < end; ++index) {
        block.stamp(index, round);
        base::write_at(file, block.bytes(), index * block_bytes, path_);
      }
      if (access == DiskAccess::buffered) {
        FileSystem::system().start_writeback(file.get(), first * block_bytes,
                                             (end - first) * block_bytes);
      }
    });
    if (::fsync(file.get()) != 0) fail("sync");
  }

  /// Drops the file's pages from the system's cache.
  void forget() const {
    const auto file = open(DiskAccess::buffered, O_RDONLY);
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }

  void read(DiskAccess access, std::uint64_t round) const {
    const auto file = open(access, O_RDONLY);
    parallel_for(blocks_, threads_, [&](std::size_t index) {
      thread_local const Block due;
      thread_local const Block found;
      base::read_at(file, found.bytes(), index * block_bytes, path_);
      due.stamp(index, round);
      if (found == due) return;
      throw base::Error(base::ExitCode::checkpoint,
                        base::format("'{}' holds other bytes than were written at byte {} (this "
                                     "storage loses data); do not keep checkpoints there",
                                     path_.string(), index * block_bytes));
    });
  }

 private:
  base::File open(DiskAccess access, int flags) const {
    return base::value_or_throw(
        base::open_file(path_, flags | (access == DiskAccess::direct ? O_DIRECT : 0), 0644,
                        base::ExitCode::checkpoint));
  }
  void reserve(const base::File& file) const {
    while (FileSystem::system().allocate(file.get(), bytes()) != 0) {
      if (errno != EINTR) fail(base::format("reserve {} for", base::bytes_text(bytes())));
    }
  }
  [[noreturn]] void fail(std::string_view doing) const {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("cannot {} '{}': {} (nothing can be measured there); choose "
                                   "another --path or fewer --bytes",
                                   doing, path_.string(), std::strerror(errno)));
  }

  std::filesystem::path path_;
  int threads_;
  std::uint64_t blocks_;
};

/// Seconds of the slowest rank; all throw when one fails.
double timed(comm::ProcessGroup& world, const std::function<void()>& work) {
  world.barrier();
  float slowest = 0;
  comm::agree_after(world, [&] {
    const auto begin = std::chrono::steady_clock::now();
    work();
    slowest = std::chrono::duration<float>(std::chrono::steady_clock::now() - begin).count();
  });
  world.all_reduce({&slowest, device::DType::f32, {1}}, comm::ReduceOp::max);
  return static_cast<double>(slowest);
}

bool all_take(comm::ProcessGroup& world, const TrialFile& file, DiskAccess access) {
  std::int32_t refused = 0;
  comm::agree_after(world, [&] { refused = file.takes(access) ? 0 : 1; });
  world.all_reduce({&refused, device::DType::i32, {1}}, comm::ReduceOp::max);
  if (refused != 0) {
    base::log::info("checkpoint", "this file system does not take {} access: not measured",
                    name(access));
  }
  return refused == 0;
}

DiskMeasurement measurement_of(const char* operation, DiskAccess access, std::uint64_t bytes,
                               std::vector<double> seconds, int ranks) {
  std::sort(seconds.begin(), seconds.end());
  return {operation, access, ranks, bytes, seconds[seconds.size() / 2], seconds.front()};
}

}  // namespace

const char* name(DiskAccess access) {
  switch (access) {
    case DiskAccess::buffered:
      return "buffered";
    case DiskAccess::direct:
      return "direct";
  }
  return "?";
}

std::vector<DiskMeasurement> measure_disk(comm::ProcessGroup& world, const DiskOptions& options) {
  const TrialFile file(options, world);
  struct Times {
    DiskAccess access;
    std::vector<double> write;
    std::vector<double> read;
  };
  std::vector<Times> all;
  for (const auto access : options.accesses) {
    if (all_take(world, file, access)) all.push_back({access, {}, {}});
  }
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    // Accesses alternate: the speed of a shared disk changes from one minute to the next.
    for (auto& times : all) {
      const auto round =
          static_cast<std::uint64_t>(repeat) * 2 + (times.access == DiskAccess::direct ? 1 : 0);
      times.write.push_back(timed(world, [&] { file.write(times.access, round); }));
      comm::agree_after(world, [&] { file.forget(); });
      times.read.push_back(timed(world, [&] { file.read(times.access, round); }));
    }
  }
  std::vector<DiskMeasurement> results;
  const auto bytes = file.bytes() * static_cast<std::uint64_t>(world.size());
  for (const auto& times : all) {
    results.push_back(measurement_of("write", times.access, bytes, times.write, world.size()));
    results.push_back(measurement_of("read", times.access, bytes, times.read, world.size()));
  }
  return results;
}

}  // namespace trireme::checkpoint
