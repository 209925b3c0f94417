// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"

#include "unit/checkpoint/storage/faulty_file_system.hpp"
#include "unit/checkpoint/support.hpp"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <unistd.h>

using namespace trireme;
using namespace trireme::tests;

TEST_CASE("a checkpoint whose manifest no reader would take is not committed") {
  const ScratchFolder scratch;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    const Held small("w", {10}, device::DType::f32, layout::whole({10}));
    checkpoint::save(request_of(scratch.path(), 1, {&small}), world);
    auto request = request_of(scratch.path(), 2, {&small});
    request.state = {{"long", std::string(checkpoint::Manifest::max_text_bytes, 'x')}};
    CHECK_THROWS_WITH(checkpoint::save(request, world),
                      Catch::Contains("no run could load this checkpoint"));
    REQUIRE(checkpoint::list(scratch.path()).size() == 1);
    CHECK(checkpoint::newest_verified(scratch.path())->step == 1);
  });
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
        checkpoint::save(request_of(scratch.path(), 1, {&small}), world, {.files = files});
    CHECK(checkpoint::verify(saved.folder, checkpoint::VerifyLevel::full).good());
  });
}

TEST_CASE("payload goes past the system's cache where the file system can") {
  const ScratchFolder scratch;
  const auto probe = scratch.path() / "probe";
  const int descriptor = ::open(probe.c_str(), O_CREAT | O_WRONLY | O_DIRECT, 0600);
  if (descriptor < 0) {
    WARN("TRIREME_SKIP: this file system has no direct writes");
    return;
  }
  ::close(descriptor);
  run_ranks(1, [&](comm::ProcessGroup& world) {
    Held large("w", {9'000'001}, device::DType::f32, layout::whole({9'000'001}));
    large.fill();
    FaultyFileSystem files;
    checkpoint::save(request_of(scratch.path(), 1, {&large}), world, {.files = files});
    CHECK(files.direct_bytes() >= 9'000'000 * 4);
  });
}

TEST_CASE("ranks that would save other contents save nothing, and are told so") {
  const ScratchFolder scratch;
  std::atomic<int> refused{0};
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Held half("w", {20}, device::DType::f32, {{10 * world.rank()}, {10}});
    auto contents = contents_of({{"w", {20}, device::DType::f32, {{0}, {10}}, 0},
                                 {"w", {20}, device::DType::f32, {{10}, {10}}, 1}});
    if (world.rank() == 1) contents.tensors[0].parts[0].begin = 1;
    try {
      checkpoint::save({scratch.path(), 1, 0, "", {}, contents, {half.data}}, world);
    } catch (const base::Error& error) {
      const std::string text = error.what();
      if (text.find("the contents of the checkpoint") != std::string::npos) ++refused;
    }
  });
  CHECK(refused == 2);
  CHECK(std::filesystem::is_empty(scratch.path()));
}

TEST_CASE("what comes from a device piece by piece is saved bit for bit") {
  const ScratchFolder scratch;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    // Three pieces, the last of them short, with another type and gaps between the two.
    const layout::Shape large{10'000, 1'001};
    Held wide("wide", large, device::DType::f32, layout::whole(large));
    Held narrow("narrow", {12'345}, device::DType::bf16, layout::whole({12'345}));
    wide.fill();
    narrow.fill();
    auto request = request_of(scratch.path(), 1, {&wide, &narrow});
    request.device = &device::host_device();
    const auto saved = checkpoint::save(request, world);
    CHECK(saved.payload_bytes > checkpoint::save_staging_bytes);
    CHECK(checkpoint::verify(saved.folder, checkpoint::VerifyLevel::full).good());
    std::fill(wide.memory.begin(), wide.memory.end(), std::byte{});
    std::fill(narrow.memory.begin(), narrow.memory.end(), std::byte{});
    checkpoint::load(saved.folder, std::vector{wide.wanted(), narrow.wanted()}, world);
    CHECK(wide.wrong_elements() == 0);
    CHECK(narrow.wrong_elements() == 0);
  });
}

TEST_CASE("a file system that refuses direct writes takes a checkpoint") {
  const ScratchFolder scratch;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    // More than one write, the last of them of no whole page.
    Held large("w", {9'000'001}, device::DType::f32, layout::whole({9'000'001}));
    large.fill();
    FaultyFileSystem files;
    files.refuse("write", 1, EINVAL);
    const auto saved =
        checkpoint::save(request_of(scratch.path(), 1, {&large}), world, {.files = files});
    CHECK(checkpoint::verify(saved.folder, checkpoint::VerifyLevel::full).good());
    std::fill(large.memory.begin(), large.memory.end(), std::byte{0xAB});
    checkpoint::load(saved.folder, std::vector{large.wanted()}, world);
    CHECK(large.wrong_elements() == 0);
  });
}

TEST_CASE("what one rank saves it loads bit for bit") {
  const ScratchFolder scratch;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    Held large("model/w", {1000, 700}, device::DType::f32, layout::whole({1000, 700}));
    Held half("model/h", {300, 500}, device::DType::bf16, layout::whole({300, 500}));
    Held small("model/b", {700}, device::DType::bf16, layout::whole({700}));
    for (auto* held : {&large, &half, &small}) held->fill();
    auto request = request_of(scratch.path() / "checkpoints", 12, {&large, &half, &small});
    request.tokens = 3456;
    request.state = {{"cursor", 77}};
    const auto report = checkpoint::save(request, world);
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
