// SPDX-License-Identifier: Apache-2.0
// Which blocks are read in which order, and the messages that carry their values.
#include "checkpoint/load/exchange.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace trireme::checkpoint {
namespace {

constexpr int values_tag = 0x10AE;
/// Bytes that are received before the next are.
constexpr std::uint64_t window_bytes = std::uint64_t{64} << 20;

/// Messages are whole words.
std::size_t padded(std::size_t bytes) {
  return (bytes + sizeof(std::int32_t) - 1) / sizeof(std::int32_t) * sizeof(std::int32_t);
}
device::Tensor words_of(std::vector<std::byte>& memory) {
  return {memory.data(),
          device::DType::i32,
          {static_cast<std::int64_t>(memory.size() / sizeof(std::int32_t))}};
}

/// Plan for one file; null if nothing of it is wanted.
const FileReads* reads_of(const std::vector<FileReads>& plan, std::size_t file) {
  const auto reads = std::partition_point(
      plan.begin(), plan.end(), [file](const FileReads& each) { return each.file < file; });
  return reads == plan.end() || reads->file != file ? nullptr : &*reads;
}

/// Calls visit(transfer, byte of the file, elements, place in the destination) for all that the
/// plan's items have in a segment, in the order that both ends of a message know.
template <typename Segment, typename Visit>
void each_value_run(const std::vector<FileReads>& plan, const Segment& segment,
                    const Visit& visit) {
  const auto* reads = reads_of(plan, segment.file);
  if (reads == nullptr) return;
  each_transfer_within(*reads, segment.begin, segment.end, [&](const Transfer& transfer) {
    each_run_within(transfer, segment.begin, segment.end,
                    [&](std::uint64_t byte, std::uint64_t elements, std::int64_t place) {
                      visit(transfer, byte, elements, place);
                    });
  });
}

}  // namespace

void Exchange::throw_failure() const {
  if (reader_) reader_->throw_failure();
}

std::uint64_t Exchange::read_bytes() const {
  return reader_ ? reader_->read_bytes() : 0;
}

Exchange::Blocks Exchange::share_of(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return {first_of_share_[index], first_of_share_[index + 1]};
}

Exchange::Blocks Exchange::chunk_of(int rank, std::uint64_t round) const {
  const auto [begin, end] = share_of(rank);
  const auto first = std::min(end, begin + round * chunk_blocks_);
  return {first, std::min(end, first + chunk_blocks_)};
}

std::uint64_t Exchange::rounds() const {
  std::uint64_t rounds = 0;
  for (int rank = 0; rank < world_.size(); ++rank) {
    const auto [begin, end] = share_of(rank);
    rounds = std::max(rounds, (end - begin + chunk_blocks_ - 1) / chunk_blocks_);
  }
  return rounds;
}

std::vector<Exchange::Segment> Exchange::segments_of(const Blocks& blocks) const {
  std::vector<Segment> segments;
  const auto after = std::upper_bound(first_block_.begin(), first_block_.end(), blocks.begin);
  auto file = static_cast<std::size_t>(after - first_block_.begin()) - 1;
  for (auto at = blocks.begin; at < blocks.end; ++file) {
    const auto end = std::min(blocks.end, first_block_[file + 1]);
    if (end <= at) continue;
    const auto bytes = manifest_.block_bytes;
    segments.push_back({file, (at - first_block_[file]) * bytes,
                        std::min((end - first_block_[file]) * bytes, manifest_.files[file].bytes),
                        at});
    at = end;
  }
  return segments;
}

std::vector<Exchange::WantedBlock> Exchange::wanted_blocks(const Segment& segment) const {
  const auto first = segment.begin / manifest_.block_bytes;
  const auto last = (segment.end - 1) / manifest_.block_bytes;
  std::map<std::uint64_t, bool> shared_by_block;
  const auto add = [&](const std::vector<FileReads>& plan, bool is_shared) {
    const auto* reads = reads_of(plan, segment.file);
    if (reads == nullptr) return;
    const auto& blocks = reads->blocks;
    for (auto at = std::lower_bound(blocks.begin(), blocks.end(), first);
         at != blocks.end() && *at <= last; ++at) {
      shared_by_block[*at] |= is_shared;
    }
  };
  add(reads_, false);
  for (const auto& audience : audiences_) add(audience.reads, true);
  std::vector<WantedBlock> wanted;
  for (const auto& [block, is_shared] : shared_by_block) wanted.push_back({block, is_shared});
  return wanted;
}

std::vector<BlockRun> Exchange::runs() const {
  std::vector<BlockRun> runs;
  const auto mine = share_of(world_.rank());
  for (std::uint64_t round = 0; mine.begin + round * chunk_blocks_ < mine.end; ++round) {
    const auto chunk = chunk_of(world_.rank(), round);
    for (const auto& segment : segments_of(chunk)) {
      const auto segment_begin = runs.size();
      for (const auto& [block, is_shared] : wanted_blocks(segment)) {
        if (runs.size() == segment_begin || runs.back().count == BlockReader::max_run ||
            runs.back().first + runs.back().count != block) {
          const auto offset = block * manifest_.block_bytes - segment.begin;
          runs.push_back(
              {round, segment.file, block, 0, false, offset_in(chunk, segment) + offset});
        }
        ++runs.back().count;
        runs.back().is_shared |= is_shared;
      }
    }
  }
  return runs;
}

std::uint64_t Exchange::offset_in(const Blocks& chunk, const Segment& segment) const {
  return (segment.first_block - chunk.begin) * manifest_.block_bytes;
}

const std::byte* Exchange::memory_of(const Chunk& chunk, const Segment& segment) const {
  return chunk.memory + offset_in(chunk.blocks, segment);
}

std::vector<std::byte> Exchange::values_for(const Audience& audience, const Chunk& chunk) const {
  std::vector<std::byte> values;
  for (const auto& segment : segments_of(chunk.blocks)) {
    const auto* memory = memory_of(chunk, segment);
    each_value_run(
        audience.reads, segment,
        [&](const Transfer& transfer, std::uint64_t byte, std::uint64_t elements, std::int64_t) {
          const auto* from = memory + (byte - segment.begin);
          values.insert(values.end(), from, from + elements * transfer.element_bytes());
        });
  }
  values.resize(padded(values.size()));
  return values;
}

void Exchange::send(const Chunk& chunk, std::vector<Outgoing>& outgoing) {
  for (const auto& audience : audiences_) {
    auto values = values_for(audience, chunk);
    if (values.empty()) continue;
    auto& message = outgoing.emplace_back(Outgoing{std::move(values), {}});
    for (const auto rank : audience.ranks) {
      message.works.push_back(world_.start_send(words_of(message.values), rank, values_tag));
    }
  }
}

std::uint64_t Exchange::bytes_from(int peer, std::uint64_t round) const {
  std::uint64_t bytes = 0;
  for (const auto& segment : segments_of(chunk_of(peer, round))) {
    each_value_run(reads_, segment,
                   [&](const Transfer& transfer, std::uint64_t, std::uint64_t elements,
                       std::int64_t) { bytes += elements * transfer.element_bytes(); });
  }
  return bytes;
}

void Exchange::deliver_from(int peer, std::uint64_t round, const std::byte* values) const {
  for (const auto& segment : segments_of(chunk_of(peer, round))) {
    each_value_run(
        reads_, segment,
        [&](const Transfer& transfer, std::uint64_t, std::uint64_t elements, std::int64_t place) {
          copy_to_item(transfer, values, elements, place);
          values += elements * transfer.element_bytes();
        });
  }
}

void Exchange::receive(std::uint64_t round) {
  struct Incoming {
    int peer;
    std::vector<std::byte> values;
    comm::Work work;
  };
  std::vector<Incoming> window;
  std::uint64_t held = 0;
  const auto take = [&] {
    for (auto& [peer, values, work] : window) {
      work.wait();
      deliver_from(peer, round, values.data());
    }
    window.clear();
    held = 0;
  };
  for (int step = 1; step < world_.size(); ++step) {
    // Not all from the same rank at once.
    const int peer = (world_.rank() + step) % world_.size();
    const auto bytes = bytes_from(peer, round);
    if (bytes == 0) continue;
    if (held > 0 && held + bytes > window_bytes) take();
    held += bytes;
    auto& incoming = window.emplace_back(Incoming{peer, std::vector<std::byte>(padded(bytes)), {}});
    incoming.work = world_.start_receive(words_of(incoming.values), peer, values_tag);
  }
  take();
}

void Exchange::run() {
  divide_blocks();
  exchange_requests();
  // Boxes that this rank wants itself are delivered by the threads that read.
  const auto deliver_own = [this](std::size_t file, std::uint64_t begin,
                                  std::span<const std::byte> values) {
    if (const auto* reads = reads_of(reads_, file)) deliver(*reads, begin, values);
  };
  reader_.emplace(folder_, manifest_, options_, runs(), chunk_blocks_ * manifest_.block_bytes,
                  deliver_own);
  for (std::uint64_t round = 0, count = rounds(); round < count; ++round) {
    const Chunk chunk{chunk_of(world_.rank(), round), reader_->next()};
    std::vector<Outgoing> outgoing;
    send(chunk, outgoing);
    receive(round);
    for (auto& message : outgoing) {
      for (auto& work : message.works) work.wait();
    }
  }
}

}  // namespace trireme::checkpoint
