// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"

#include "unit/checkpoint/faulty_file_system.hpp"
#include "unit/checkpoint/support.hpp"

#include <catch2/catch.hpp>

#include <memory>

using namespace trireme;
using namespace trireme::tests;

TEST_CASE("a checkpoint whose manifest no reader would take is not committed") {
  const ScratchFolder scratch;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    const Held small("w", {10}, device::DType::f32, layout::whole({10}));
    checkpoint::save({scratch.path(), 1, 0, "", {}, {small.item}}, world);
    const std::string long_text(checkpoint::Manifest::max_text_bytes, 'x');
    CHECK_THROWS_WITH(
        checkpoint::save({scratch.path(), 2, 0, "", {{"long", long_text}}, {small.item}}, world),
        Catch::Contains("no run could load this checkpoint"));
    REQUIRE(checkpoint::list(scratch.path()).size() == 1);
    CHECK(checkpoint::newest_verified(scratch.path())->step == 1);
  });
}

TEST_CASE("how long a manifest will be is known before anything is written") {
  const ScratchFolder scratch;
  const int ranks = GENERATE(1, 4);
  run_ranks(ranks, [&](comm::ProcessGroup& world) {
    // As the shards of ZeRO: a few rows each of many tensors, whose names hardly count.
    constexpr std::int64_t rows = 64;
    std::vector<std::unique_ptr<Held>> held;
    std::vector<checkpoint::SaveItem> items;
    for (int tensor = 0; tensor < 40; ++tensor) {
      for (std::int64_t row = world.rank(); row < rows; row += ranks) {
        held.push_back(std::make_unique<Held>(base::format("layers.{}.w", tensor),
                                              layout::Shape{rows, 64}, device::DType::f32,
                                              layout::Box{{row, 0}, {1, 64}}));
        items.push_back(held.back()->item);
      }
    }
    const auto predicted = checkpoint::predict_manifest_bytes(items, 1, world);
    const auto saved = checkpoint::save({scratch.path(), 1, 0, "", {}, items}, world);
    const auto written = std::filesystem::file_size(saved.folder / "manifest.json");
    CHECK(static_cast<double>(predicted) > 0.85 * static_cast<double>(written));
    CHECK(static_cast<double>(predicted) < 1.15 * static_cast<double>(written));
  });
  CHECK(checkpoint::check_manifest_bytes(std::uint64_t{256} << 20).ok());
  CHECK(checkpoint::check_manifest_bytes(std::uint64_t{280} << 20).failure().code ==
        base::ExitCode::usage);
}

TEST_CASE("a file system without fallocate, or without fsync of folders, takes a checkpoint") {
  const ScratchFolder scratch;
  const int no_folder_sync = GENERATE(EINVAL, ENOTSUP);
  run_ranks(1, [&](comm::ProcessGroup& world) {
    Held small("w", {10}, device::DType::f32, layout::whole({10}));
    small.fill();
    FaultyFileSystem files;
    files.refuse("allocate", 1 << 30, EOPNOTSUPP);
    files.lack_folder_sync(no_folder_sync);
    const auto saved =
        checkpoint::save({scratch.path(), 1, 0, "", {}, {small.item}}, world, {.files = files});
    CHECK(checkpoint::verify(saved.folder, checkpoint::VerifyLevel::full).good());
  });
}

TEST_CASE("what one rank saves it loads bit for bit") {
  const ScratchFolder scratch;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    Held large("model/w", {1000, 700}, device::DType::f32, layout::whole({1000, 700}));
    Held half("model/h", {300, 500}, device::DType::bf16, layout::whole({300, 500}));
    Held small("model/b", {700}, device::DType::bf16, layout::whole({700}));
    for (auto* held : {&large, &half, &small}) held->fill();
    const auto report = checkpoint::save({scratch.path() / "checkpoints",
                                          12,
                                          3456,
                                          "test",
                                          {{"cursor", 77}},
                                          {large.item, half.item, small.item}},
                                         world);
    CHECK(report.folder.filename() == "step-000000012");
    for (auto* held : {&large, &half, &small}) {
      std::fill(held->memory.begin(), held->memory.end(), std::byte{0xAB});
    }
    const auto loaded = checkpoint::load(
        report.folder, std::vector{large.wanted(), half.wanted(), small.wanted()}, world);
    CHECK(large.wrong_elements() == 0);
    CHECK(half.wrong_elements() == 0);
    CHECK(small.wrong_elements() == 0);
    CHECK(loaded.step == 12);
    CHECK(loaded.tokens == 3456);
    CHECK(loaded.state == base::Json{{"cursor", 77}});
    CHECK(checkpoint::verify(report.folder, checkpoint::VerifyLevel::full).good());
  });
}
