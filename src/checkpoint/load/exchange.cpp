// SPDX-License-Identifier: Apache-2.0
// Reading, and the messages that carry values.
#include "checkpoint/load/exchange.hpp"

#include "trireme/base/error.hpp"

#include "checkpoint/load/stored_file.hpp"
#include "checkpoint/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <span>
#include <utility>

namespace trireme::checkpoint {
namespace {

constexpr int values_tag = 0x10AE;
/// Bytes that are received before the next are.
constexpr std::uint64_t window_bytes = std::uint64_t{64} << 20;

/// Storage needs long reads to be fast; several are under way at once.
constexpr std::uint64_t run_blocks = 8;

/// Messages are whole words.
std::size_t padded(std::size_t bytes) {
  return (bytes + sizeof(std::int32_t) - 1) / sizeof(std::int32_t) * sizeof(std::int32_t);
}
device::Tensor words_of(std::vector<std::byte>& memory) {
  return {memory.data(),
          device::DType::i32,
          {static_cast<std::int64_t>(memory.size() / sizeof(std::int32_t))}};
}

/// Neighbouring blocks, which one read takes.
struct BlockRun {
  std::uint64_t first;
  std::uint64_t count;
};
std::vector<BlockRun> runs_of(const std::vector<std::uint64_t>& blocks) {
  std::vector<BlockRun> runs;
  for (const auto block : blocks) {
    if (!runs.empty() && runs.back().first + runs.back().count == block &&
        runs.back().count < run_blocks) {
      ++runs.back().count;
    } else {
      runs.push_back({block, 1});
    }
  }
  return runs;
}

/// Plan for one file; null if nothing of it is wanted.
const FileReads* reads_of(const std::vector<FileReads>& plan, std::size_t file) {
  const auto reads = std::partition_point(
      plan.begin(), plan.end(), [file](const FileReads& each) { return each.file < file; });
  return reads == plan.end() || reads->file != file ? nullptr : &*reads;
}

/// Transfers of a file that meet bytes [begin, end), in the plan of somebody's items.
template <typename Visit>
void each_transfer_within(const std::vector<FileReads>& plan, std::size_t file, std::uint64_t begin,
                          std::uint64_t end, const Visit& visit) {
  const auto* reads = reads_of(plan, file);
  if (reads == nullptr) return;
  auto transfer =
      std::partition_point(reads->transfers.begin(), reads->transfers.end(),
                           [begin](const Transfer& each) { return each.end() <= begin; });
  for (; transfer != reads->transfers.end() && transfer->begin() < end; ++transfer) {
    visit(*transfer);
  }
}

/// Calls visit(transfer, byte of the file, elements, place in the destination) for all that the
/// plan's items have in a segment, in the order that both ends of a message know.
template <typename Segment, typename Visit>
void each_value_run(const std::vector<FileReads>& plan, const Segment& segment,
                    const Visit& visit) {
  each_transfer_within(
      plan, segment.file, segment.begin, segment.end, [&](const Transfer& transfer) {
        each_run_within(transfer, segment.begin, segment.end,
                        [&](std::uint64_t byte, std::uint64_t elements, std::int64_t place) {
                          visit(transfer, byte, elements, place);
                        });
      });
}

}  // namespace

void Exchange::throw_failure() const {
  if (failure_) std::rethrow_exception(failure_);
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

std::vector<std::uint64_t> Exchange::wanted_blocks(const Segment& segment) const {
  const auto first = segment.begin / manifest_.block_bytes;
  const auto last = (segment.end - 1) / manifest_.block_bytes;
  std::vector<std::uint64_t> wanted;
  const auto add = [&](const std::vector<FileReads>& plan) {
    const auto* reads = reads_of(plan, segment.file);
    if (reads == nullptr) return;
    const auto begin = std::lower_bound(reads->blocks.begin(), reads->blocks.end(), first);
    wanted.insert(wanted.end(), begin, std::upper_bound(begin, reads->blocks.end(), last));
  };
  add(reads_);
  for (const auto& audience : audiences_) add(audience.reads);
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  return wanted;
}

const BlockReader& Exchange::reader_of(std::size_t file) {
  if (reader_ && reader_->file == file) return reader_->blocks;
  reader_.reset();
  BlockReader blocks(folder_, manifest_, file, options_.access);
  if (const auto damage = blocks.load_checksums()) {
    throw base::Error(base::ExitCode::checkpoint, damage->text);
  }
  blocks.open_directly();
  return reader_.emplace(OpenFile{file, std::move(blocks)}).blocks;
}

void Exchange::read_segment(const Segment& segment, std::byte* memory) {
  const auto wanted = wanted_blocks(segment);
  if (wanted.empty()) return;
  const auto& reader = reader_of(segment.file);
  const auto runs = runs_of(wanted);
  std::atomic<std::uint64_t> bytes{0};
  parallel_for(runs.size(), options_.threads, [&](std::size_t index) {
    const auto [first, count] = runs[index];
    reader.read_blocks(first, count, memory + (reader.block_begin(first) - segment.begin));
    for (auto block = first; block < first + count; ++block) {
      const auto begin = reader.block_begin(block);
      const auto end = reader.block_end(block);
      const std::span values(memory + (begin - segment.begin), end - begin);
      if (!reader.matches(block, values)) {
        throw base::Error(base::ExitCode::checkpoint,
                          checksum_damage(folder_, manifest_, segment.file, begin, end).text);
      }
      // What this rank wants itself, while the block is in the cache.
      each_transfer_within(reads_, segment.file, begin, end,
                           [&](const Transfer& transfer) { deliver(transfer, begin, values); });
      bytes += end - begin;
    }
  });
  read_bytes_ += bytes;
}

Exchange::Chunk Exchange::read_chunk(std::uint64_t round) {
  const auto blocks = chunk_of(world_.rank(), round);
  const auto bytes = (blocks.end - blocks.begin) * manifest_.block_bytes;
  const Chunk chunk{blocks, memories_[round % 2].at_least(bytes)};
  if (failure_) return chunk;
  try {
    for (const auto& segment : segments_of(chunk.blocks)) {
      read_segment(segment, memory_of(chunk, segment));
    }
  } catch (const base::Error&) {
    failure_ = std::current_exception();
  }
  return chunk;
}

std::byte* Exchange::memory_of(const Chunk& chunk, const Segment& segment) const {
  return chunk.memory + (segment.first_block - chunk.blocks.begin) * manifest_.block_bytes;
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
  const auto count = rounds();
  const auto start_reading = [this](std::uint64_t round) {
    return std::async(std::launch::async, [this, round] { return read_chunk(round); });
  };
  std::future<Chunk> next;
  if (count > 0) next = start_reading(0);
  for (std::uint64_t round = 0; round < count; ++round) {
    const auto chunk = next.get();
    if (round + 1 < count) next = start_reading(round + 1);
    std::vector<Outgoing> outgoing;
    send(chunk, outgoing);
    receive(round);
    for (auto& message : outgoing) {
      for (auto& work : message.works) work.wait();
    }
  }
}

}  // namespace trireme::checkpoint
