// SPDX-License-Identifier: Apache-2.0
// Loads to memory that the host does not reach.
#include "trireme/base/error.hpp"
#include "trireme/checkpoint/retention.hpp"
#include "trireme/device/passing_device.hpp"

#include "unit/checkpoint/small_steps.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <atomic>
#include <fstream>
#include <string>

using namespace trireme;
using namespace trireme::tests;

namespace {

/// Host memory that pretends to be a GPU's: values come by copies from its staging memory alone.
class Watched final : public device::PassingDevice {
 public:
  Watched() : PassingDevice(device::host_device()) {}

  bool is_host() const override { return false; }
  device::Arena staging(device::Purpose purpose, std::size_t bytes) override {
    auto arena = PassingDevice::staging(purpose, bytes);
    staged_bytes += bytes;
    begin_ = static_cast<const std::byte*>(arena.whole().raw());
    end_ = begin_ + bytes;
    return arena;
  }
  void copy_in(const void* from, const device::Tensor& to) override {
    const auto* begin = static_cast<const std::byte*>(from);
    if (begin < begin_ || begin + to.byte_count() > end_) copies_from_staging = false;
    copied_bytes += to.byte_count();
    PassingDevice::copy_in(from, to);
  }

  std::size_t staged_bytes = 0;
  std::size_t copied_bytes = 0;
  bool copies_from_staging = true;

 private:
  const std::byte* begin_ = nullptr;
  const std::byte* end_ = nullptr;
};

}  // namespace

TEST_CASE("a state several times as large as the host's part of it comes to a device whole") {
  const ScratchFolder scratch;
  // Rows that no turn holds in whole numbers, and a type that leaves odd bytes.
  const layout::Shape shape{30'001, 3'001};
  const layout::Shape few{12'345};
  static_assert(std::uint64_t{4} * 30'001 * 3'001 > checkpoint::load_staging_bytes);
  run_ranks(1, [&](comm::ProcessGroup& world) {
    Held narrow("narrow", few, device::DType::bf16, layout::whole(few));
    Held wide("wide", shape, device::DType::f32, layout::whole(shape));
    narrow.fill();
    wide.fill();
    checkpoint::save(request_of(scratch.path(), 1, {&narrow, &wide}), world);
  });
  struct Outcome {
    std::int64_t wrong = -1;
    std::size_t wanted = 0;
    std::uint64_t boxes = 0;
    std::size_t copied = 0;
    std::size_t staged = 0;
    bool from_staging = false;
  };
  // Tests are checked on one thread alone.
  std::array<Outcome, 2> ranks;
  // Other boxes than those saved, and not equally many turns on both ranks.
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const bool is_first = world.rank() == 0;
    const Held narrow("narrow", few, device::DType::bf16, {{is_first ? 1 : 9'000}, {3'333}});
    const Held wide(
        "wide", shape, device::DType::f32,
        is_first ? layout::Box{{0, 0}, {30'001, 2'998}} : layout::Box{{17, 2'998}, {29'900, 3}});
    Watched device;
    const auto report =
        checkpoint::load(scratch.path() / "step-000000001",
                         std::vector{narrow.wanted(), wide.wanted()}, world, {.device = &device});
    auto& rank = ranks[static_cast<std::size_t>(world.rank())];
    rank.wrong = narrow.wrong_elements() + wide.wrong_elements();
    rank.wanted = narrow.memory.size() + wide.memory.size();
    rank.boxes = report.box_bytes;
    rank.copied = device.copied_bytes;
    rank.staged = device.staged_bytes;
    rank.from_staging = device.copies_from_staging;
  });
  for (const auto& rank : ranks) {
    CHECK(rank.wrong == 0);
    CHECK(rank.boxes == rank.wanted);
    CHECK(rank.copied == rank.wanted);
    CHECK(rank.from_staging);
    CHECK(rank.staged <= checkpoint::load_staging_bytes);
  }
}

TEST_CASE("a device gets nothing of a checkpoint that has another shape of a tensor") {
  const ScratchFolder scratch;
  save_small(scratch.path(), 1, 1.0F);
  std::atomic<int> refused{0};
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Held good("w", {10}, device::DType::f32, layout::whole({10}));
    const Held other("w", {11}, device::DType::f32, layout::whole({11}));
    std::vector items{good.wanted()};
    if (world.rank() == 1) items.push_back(other.wanted());
    Watched device;
    try {
      checkpoint::load(scratch.path() / "step-000000001", items, world, {.device = &device});
    } catch (const base::Error& error) {
      const bool names_rank = std::string(error.what()).starts_with("rank 1: tensor 'w'");
      if (names_rank && device.copied_bytes == 0) ++refused;
    }
  });
  CHECK(refused == 2);
}

TEST_CASE("a step that is being loaded stays, although a newer one looks as good") {
  const ScratchFolder scratch;
  save_small(scratch.path(), 1, 1.0F);
  const auto newer = save_small(scratch.path(), 2, 2.0F);
  // A byte that only a look at all of them finds.
  std::fstream shard(newer.path / "shard-00000.h5",
                     std::ios::binary | std::ios::in | std::ios::out);
  shard.seekp((std::streamoff{1} << 20) + 3);
  shard.put('\x7F');
  shard.close();
  run_ranks(1, [&](comm::ProcessGroup& world) {
    const Held small("w", {10}, device::DType::f32, layout::whole({10}));
    const auto report = checkpoint::load_newest(
        scratch.path(),
        [&](const checkpoint::Manifest& manifest) {
          if (manifest.step == 1) checkpoint::prune(scratch.path(), {.keep_last = 1});
          return std::vector{small.wanted()};
        },
        world);
    REQUIRE(report.has_value());
    CHECK(report->step == 1);
    CHECK(small.data.f32()[9] == 1.0F);
  });
  checkpoint::prune(scratch.path(), {.keep_last = 1});
  CHECK(steps_in(scratch.path()) == std::vector<std::int64_t>{2});
}
