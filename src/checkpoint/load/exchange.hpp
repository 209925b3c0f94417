// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/load.hpp"
#include "trireme/comm/process_group.hpp"

#include "checkpoint/load/chunk_reader.hpp"
#include "checkpoint/load/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace trireme::checkpoint {

/// A load in which every block that any rank needs is read once, by one rank, and its values go
/// from there to the ranks that need them. A rank reads blocks that follow each other, as many of
/// all as its boxes are of all ranks' boxes: where the layout that loads is the one that saved, a
/// rank reads what it needs itself, replicas in turn, and little is exchanged.
class Exchange {
 public:
  /// `box_bytes`: of this rank's boxes. `reads`, the plan for them, and the manifest outlive it.
  Exchange(const std::filesystem::path& step_folder, const Manifest& manifest,
           std::uint64_t box_bytes, const std::vector<FileReads>& reads, comm::ProcessGroup& world,
           const LoadOptions& options);

  /// Collective over the group. Host-blocking: yes. A failure to read waits until all values are
  /// exchanged: peers count on this rank's part.
  void run();
  /// Throws what this rank has failed to read: Error (checkpoint).
  void throw_failure() const;
  std::uint64_t read_bytes() const;

 private:
  /// Blocks [begin, end), numbered through all files.
  struct Blocks {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  /// Consecutive bytes of one file, and the first block among all.
  struct Segment {
    std::size_t file;
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t first_block;
  };
  /// Ranks that want the same from this one, and what they get.
  struct Audience {
    std::vector<int> ranks;
    std::vector<LoadItem> items;
    std::vector<FileReads> reads;
  };
  /// Values of blocks of this rank's share.
  struct Chunk {
    Blocks blocks;
    const std::byte* memory = nullptr;
  };

  /// Message to all ranks of an audience.
  struct Outgoing {
    std::vector<std::byte> values;
    std::vector<comm::Work> works;
  };

  void divide_blocks();
  Blocks share_of(int rank) const;
  Blocks chunk_of(int rank, std::uint64_t round) const;
  std::uint64_t rounds() const;
  std::vector<Segment> segments_of(const Blocks& blocks) const;

  std::vector<std::string> requests() const;
  void exchange_requests();
  Audience audience_of(const std::string& request) const;

  struct WantedBlock {
    std::uint64_t block;
    bool is_shared;  ///< other ranks want values of it
  };
  std::vector<WantedBlock> wanted_blocks(const Segment& segment) const;
  /// Runs that this rank reads, chunk after chunk.
  std::vector<BlockRun> runs() const;
  std::uint64_t offset_in(const Blocks& chunk, const Segment& segment) const;
  /// Values of a segment of the chunk, one after the other as in the file.
  const std::byte* memory_of(const Chunk& chunk, const Segment& segment) const;

  std::vector<std::byte> values_for(const Audience& audience, const Chunk& chunk) const;
  void send(const Chunk& chunk, std::vector<Outgoing>& outgoing);
  std::uint64_t bytes_from(int peer, std::uint64_t round) const;
  void deliver_from(int peer, std::uint64_t round, const std::byte* values) const;
  void receive(std::uint64_t round);

  const std::filesystem::path& folder_;
  const Manifest& manifest_;
  std::uint64_t box_bytes_;
  const std::vector<FileReads>& reads_;
  comm::ProcessGroup& world_;
  LoadOptions options_;
  std::uint64_t chunk_blocks_;
  /// First block of each file, and one past the last.
  std::vector<std::uint64_t> first_block_;
  /// First block of each rank's share, and one past the last.
  std::vector<std::uint64_t> first_of_share_;
  std::vector<Audience> audiences_;
  std::optional<ChunkReader> reader_;
};

}  // namespace trireme::checkpoint
