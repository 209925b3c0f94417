// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <source_location>

namespace trireme::device::simt {

using Place = std::source_location;

/// Who touches memory, and when. All threads of a block have passed the same barriers, so one
/// number tells between which two of them a block is; it is never used again.
struct Actor {
  std::uint64_t launch = 0;
  std::uint64_t block_run = 0;
  std::uint64_t epoch = 0;
  std::int64_t block = 0;
  int thread = 0;
  int warp = 0;
  /// Warp synchronisations that this thread's warp has passed.
  std::uint32_t warp_epoch = 0;
};

/// An earlier access that nothing orders before the present one.
struct Conflict {
  bool was_write = false;
  std::int64_t block = 0;
  int thread = 0;
  Place where;
};

/// Who touched one element lately. Two threads of a block are ordered by a barrier of the block;
/// two of a warp by a synchronisation of the warp too; two blocks by nothing but the end of the
/// launch. Enough is kept to find some conflict whenever there is one: the last write, and of the
/// reads since the last barrier two of each of two warps (a third warp's read could only conflict
/// with a write that one of the others conflicts with as well).
class Marks {
 public:
  std::optional<Conflict> read(const Actor& actor, const Place& where);
  std::optional<Conflict> write(const Actor& actor, const Place& where);
  /// Has anyone written in this run of the block? For shared memory.
  bool written_in(std::uint64_t block_run) const { return written_run_ == block_run; }

 private:
  static constexpr int nobody = -1;
  struct Touch {
    int thread = nobody;
    std::uint32_t warp_epoch = 0;
    Place where;
  };
  /// Reads of one warp: two threads at its latest epoch.
  struct WarpReads {
    int warp = nobody;
    std::uint32_t warp_epoch = 0;
    std::array<Touch, 2> by;
  };

  void enter(const Actor& actor);
  std::optional<Conflict> with_write(const Actor& actor) const;
  std::optional<Conflict> with_reads(const Actor& actor) const;

  std::uint64_t launch_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t written_run_ = 0;
  Touch write_;
  std::array<WarpReads, 2> reads_;
  // Writer of any block of this launch.
  std::int64_t writer_block_ = nobody;
  std::int64_t reader_block_ = nobody;
  std::int64_t other_reader_block_ = nobody;
  Place writer_place_;
  Place reader_place_;
};

}  // namespace trireme::device::simt
