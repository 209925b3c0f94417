// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/load/chunk_reader.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"

#include "unit/checkpoint/support.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <vector>

using namespace trireme;
using namespace trireme::tests;
using checkpoint::BlockRun;
using checkpoint::ChunkReader;

namespace {

constexpr auto block_bytes = checkpoint::Manifest::default_block_bytes;
/// Several times as many as are read ahead.
constexpr std::uint64_t chunks = 17;
constexpr std::uint64_t blocks_of_chunk = 2;

/// A step with a file of as many blocks, and more, of values that all differ.
class LongStep {
 public:
  LongStep() {
    run_ranks(1, [&](comm::ProcessGroup& world) {
      const auto elements =
          static_cast<std::int64_t>(chunks * blocks_of_chunk * block_bytes / sizeof(float));
      const Held held("w", {elements}, device::DType::f32, layout::whole({elements}));
      for (std::int64_t at = 0; at < elements; ++at) {
        held.data.f32()[at] = static_cast<float>(at);
      }
      step_ = checkpoint::save(request_of(folder_.path(), 1, {&held}), world).folder;
    });
    manifest_ = base::value_or_throw(checkpoint::read_manifest(step_));
    std::ifstream stream(file(), std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(stream), {});
  }

  const std::filesystem::path& step() const { return step_; }
  const checkpoint::Manifest& manifest() const { return manifest_; }
  std::filesystem::path file() const { return step_ / manifest_.files[0].name; }
  const std::byte* block(std::uint64_t number) const {
    return reinterpret_cast<const std::byte*>(bytes_.data()) + number * block_bytes;
  }
  /// Every chunk has one block that others want, at the chunk's end, and one that they do not.
  static std::vector<BlockRun> runs() {
    std::vector<BlockRun> runs;
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      runs.push_back({chunk, 0, 2 * chunk, 1, false, 0});
      runs.push_back({chunk, 0, 2 * chunk + 1, 1, true, block_bytes});
    }
    return runs;
  }

 private:
  ScratchFolder folder_;
  std::filesystem::path step_;
  checkpoint::Manifest manifest_;
  std::string bytes_;
};

}  // namespace

TEST_CASE("chunks are whole when they are given, however many are read ahead") {
  const LongStep saved;
  std::mutex mutex;
  std::set<std::uint64_t> delivered;
  const auto deliver = [&](std::size_t file, std::uint64_t begin,
                           std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex);
    const auto number = begin / block_bytes;
    const bool equal = std::memcmp(bytes.data(), saved.block(number), bytes.size()) == 0;
    if (file == 0 && equal) delivered.insert(number);
  };
  ChunkReader reader(saved.step(), saved.manifest(), {}, LongStep::runs(),
                     blocks_of_chunk * block_bytes, deliver);
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    const auto* memory = reader.next();
    const std::lock_guard lock(mutex);
    CHECK(delivered.contains(2 * chunk));
    CHECK(delivered.contains(2 * chunk + 1));
    CHECK(std::memcmp(memory + block_bytes, saved.block(2 * chunk + 1), block_bytes) == 0);
  }
  CHECK(reader.read_bytes() == chunks * blocks_of_chunk * block_bytes);
  CHECK_NOTHROW(reader.throw_failure());
}

TEST_CASE("a chunk that cannot be read holds up nobody and is told at the end") {
  const LongStep saved;
  {
    std::fstream stream(saved.file(), std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(static_cast<std::streamoff>(9 * block_bytes + 77));
    stream.put(static_cast<char>(~static_cast<int>(*saved.block(9))));
  }
  ChunkReader reader(saved.step(), saved.manifest(), {}, LongStep::runs(),
                     blocks_of_chunk * block_bytes,
                     [](std::size_t, std::uint64_t, std::span<const std::byte>) {});
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) reader.next();
  CHECK_THROWS_WITH(reader.throw_failure(), Catch::Contains("shard-00000.h5' is damaged"));
}

TEST_CASE("a reader that is given up in the middle ends") {
  const LongStep saved;
  ChunkReader reader(saved.step(), saved.manifest(), {}, LongStep::runs(),
                     blocks_of_chunk * block_bytes,
                     [](std::size_t, std::uint64_t, std::span<const std::byte>) {});
  CHECK(reader.next() != nullptr);
}
