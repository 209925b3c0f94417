// SPDX-License-Identifier: Apache-2.0
#include "unit/checkpoint/small_steps.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace trireme;
using namespace trireme::tests;

TEST_CASE("steps are listed newest first, and only folders that bear a step's one name") {
  const ScratchFolder scratch;
  for (const std::string name :
       {"step-000000002", "step-000000010", "step-1000000000", "step-2", "step-0000000003",
        "step-00000000x", "step-", "step--00000001", "step-000000004.old", "other",
        "step-000000005.tmp-abc", "step-000000010.replaced-abc", "step-000000007.replaced-abc"}) {
    std::filesystem::create_directory(scratch.path() / name);
  }
  std::ofstream(scratch.path() / "step-000000008") << "a file";
  std::filesystem::create_directory_symlink(scratch.path() / "other",
                                            scratch.path() / "step-000000009");
  CHECK(steps_in(scratch.path()) == std::vector<std::int64_t>{1'000'000'000, 10, 7, 2});
  CHECK(steps_in(scratch.path() / "none").empty());
}

TEST_CASE("garbage is what has a temporary name and has not been touched for long enough") {
  const ScratchFolder scratch;
  save_small(scratch.path(), 10);
  for (const std::string name : {"step-000000005.tmp-abc", "step-000000010.replaced-abc",
                                 "step-000000007.replaced-abc", "other.tmp-abc"}) {
    std::filesystem::create_directory(scratch.path() / name);
  }
  CHECK(checkpoint::collect_garbage(scratch.path(), std::chrono::hours{1}).empty());
  auto removed = checkpoint::collect_garbage(scratch.path(), std::chrono::seconds{0});
  std::sort(removed.begin(), removed.end());
  REQUIRE(removed.size() == 2);
  CHECK(removed[0].filename() == "step-000000005.tmp-abc");
  // Step 10 has its successor; step 7 is itself the step.
  CHECK(removed[1].filename() == "step-000000010.replaced-abc");
  CHECK(std::filesystem::exists(scratch.path() / "other.tmp-abc"));
  CHECK(steps_in(scratch.path()) == std::vector<std::int64_t>{10, 7});
}

TEST_CASE("a step is found from its own folder, its run and the folder of steps") {
  const ScratchFolder scratch;
  const auto checkpoints = checkpoint::checkpoints_of_run(scratch.path());
  CHECK_FALSE(checkpoint::find_step(scratch.path()).ok());
  save_small(checkpoints, 3);
  save_small(checkpoints, 8);
  CHECK(checkpoint::find_step(scratch.path())->step == 8);
  CHECK(checkpoint::find_step(checkpoints)->step == 8);
  CHECK(checkpoint::find_step(checkpoints / "step-000000003")->step == 3);
  std::ifstream latest(checkpoints / "LATEST");
  std::string name;
  CHECK((latest >> name && name == "step-000000008"));
  const auto missing = checkpoint::find_step(scratch.path() / "none");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.failure().code == base::ExitCode::checkpoint);
}

TEST_CASE("a rank alone reads what it wants of a manifest that it has") {
  const ScratchFolder scratch;
  Held all("w", {1000, 300}, device::DType::f32, layout::whole({1000, 300}));
  all.fill();
  run_ranks(1, [&](comm::ProcessGroup& world) {
    checkpoint::save(request_of(scratch.path(), 1, {&all}), world);
  });
  const auto step = scratch.path() / "step-000000001";
  const auto manifest = checkpoint::read_manifest(step);
  REQUIRE(manifest.ok());
  Held part("w", {1000, 300}, device::DType::f32, {{990, 10}, {10, 5}});
  const std::vector<checkpoint::LoadItem> items{part.wanted()};
  const auto bytes = checkpoint::load_alone(step, *manifest, items);
  CHECK(part.wrong_elements() == 0);
  // The last of two blocks, no more.
  CHECK(bytes <= manifest->block_bytes);
}
