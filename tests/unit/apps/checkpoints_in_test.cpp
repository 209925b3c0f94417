// SPDX-License-Identifier: Apache-2.0
#include "apps/runs/checkpoints_in.hpp"

#include "trireme/base/format.hpp"

#include "support/temporary_folder.hpp"
#include "unit/checkpoint/small_steps.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace trireme;

TEST_CASE("the step that a start would go on after is one that can be used") {
  const tests::TemporaryFolder run;
  for (const int step : {2, 4, 6}) tests::save_small(run.path() / "checkpoints", step);
  const auto good = apps::checkpoints_in(run.path());
  CHECK(good.newest_usable == 6);
  CHECK(good.count == 3);
  CHECK(good.notes.empty());
  const auto path = [&run](int step) {
    return run.path() / base::format("checkpoints/step-00000000{}", step);
  };
  std::filesystem::remove(path(6) / "manifest.json");
  const auto damaged = apps::checkpoints_in(run.path());
  CHECK(damaged.newest_usable == 4);
  REQUIRE(damaged.notes.size() == 1);
  CHECK(damaged.notes[0].starts_with("step 6 is not usable: "));
  for (const int step : {2, 4}) std::ofstream(path(step) / "manifest.json") << "{";
  const auto none = apps::checkpoints_in(run.path());
  CHECK_FALSE(none.newest_usable);
  CHECK(none.count == 3);
  CHECK(none.notes.size() == 3);
}

TEST_CASE("a folder of checkpoints that cannot be listed is noted") {
  const tests::TemporaryFolder run;
  std::ofstream(run.path() / "checkpoints") << "a file";
  const auto found = apps::checkpoints_in(run.path());
  CHECK(found.count == 0);
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0].starts_with("its checkpoints are not known: "));
}
