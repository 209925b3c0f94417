// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/load/chunk_reader.hpp"

#include "trireme/base/error.hpp"

#include "checkpoint/parallel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace trireme::checkpoint {

ChunkReader::ChunkReader(const std::filesystem::path& step_folder, const Manifest& manifest,
                         const LoadOptions& options, std::vector<BlockRun> runs,
                         std::uint64_t chunk_bytes, Deliver deliver)
    : folder_(step_folder),
      manifest_(manifest),
      access_(options.access),
      runs_(std::move(runs)),
      chunk_bytes_(chunk_bytes),
      deliver_(std::move(deliver)) {
  for (const auto& run : runs_) ++unread_[run.chunk];
  const auto wanted = static_cast<std::size_t>(reading_threads(folder_, options.threads));
  for (std::size_t index = 0; index < std::min(wanted, runs_.size()); ++index) {
    threads_.emplace_back([this] { read_runs(); });
  }
}

ChunkReader::~ChunkReader() {
  const std::lock_guard lock(mutex_);
  next_run_ = runs_.size();
  changed_.notify_all();
}

bool ChunkReader::is_read(std::uint64_t chunk) const {
  return failure_ != nullptr || !unread_.contains(chunk);
}

const std::byte* ChunkReader::next() {
  std::unique_lock lock(mutex_);
  const auto chunk = given_++;
  changed_.notify_all();
  changed_.wait(lock, [&] { return is_read(chunk); });
  return memories_[chunk % memories].at_least(chunk_bytes_);
}

void ChunkReader::throw_failure() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void ChunkReader::read_runs() {
  // Files stay open from one run to the next.
  std::shared_ptr<const BlockReader> file;
  // Small and used again and again, so that it stays in the cache: a disk that others emulate
  // delivered 1.4 times as fast there as to memory that does not.
  AlignedMemory own;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] {
      return next_run_ == runs_.size() || runs_[next_run_].chunk + 1 < given_ + memories;
    });
    if (next_run_ == runs_.size()) return;
    const auto& run = runs_[next_run_++];
    auto* const chunk =
        run.is_shared ? memories_[run.chunk % memories].at_least(chunk_bytes_) : nullptr;
    lock.unlock();
    std::exception_ptr failure;
    try {
      file = opened(run.file);
      const auto values =
          file->read_run(run.first, run.count, own,
                         [&](std::uint64_t block, std::span<const std::byte> bytes, bool matches) {
                           take(*file, run.file, block, bytes, matches);
                         });
      if (chunk != nullptr) std::memcpy(chunk + run.offset, values.data(), values.size());
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    if (failure_) next_run_ = runs_.size();
    const auto unread = unread_.find(run.chunk);
    if (--unread->second == 0) unread_.erase(unread);
    if (failure_ || !unread_.contains(run.chunk)) changed_.notify_all();
  }
}

std::shared_ptr<const BlockReader> ChunkReader::opened(std::size_t file) {
  const std::lock_guard lock(files_mutex_);
  auto& known = files_[file];
  if (auto open = known.lock()) return open;
  auto reader = std::make_shared<BlockReader>(folder_, manifest_, file, access_);
  if (const auto damage = reader->load_checksums()) {
    throw base::Error(base::ExitCode::checkpoint, damage->text);
  }
  reader->open_directly();
  known = reader;
  return reader;
}

void ChunkReader::take(const BlockReader& reader, std::size_t file, std::uint64_t block,
                       std::span<const std::byte> bytes, bool matches) {
  const auto begin = reader.block_begin(block);
  if (!matches) throw_damage(folder_, manifest_, file, begin, bytes.size());
  deliver_(file, begin, bytes);
  read_bytes_ += bytes.size();
}

}  // namespace trireme::checkpoint
