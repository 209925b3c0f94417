// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/time_plan.hpp"

#include "trireme/base/error.hpp"

#include "small_model.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace trireme;
using namespace trireme::plan;
using tests::small_config;

TEST_CASE("libraries of GPUs take memory that arrays do not have") {
  const auto path =
      std::filesystem::path(TRIREME_SOURCE_DIR) / "configs" / "machines" / "dgx-h100.conf";
  const auto config = small_config({"numerics.backend=cuda"});
  const auto plan = base::value_or_throw(plan_memory(config, tests::model_of(config), 1));
  std::int64_t of_libraries = 0;
  for (const auto& library : plan.libraries) {
    of_libraries += static_cast<std::int64_t>(library.bytes);
  }
  REQUIRE(of_libraries > 0);
  const auto machine = base::value_or_throw(predict::read_machine(path));
  auto time = base::value_or_throw(plan_time(plan, config.options(), path));
  CHECK(time.machine_memory == machine.node.room() - of_libraries);
  time.memory_bytes = {static_cast<std::size_t>(time.machine_memory)};
  CHECK(time.fits());
  CHECK(to_json(time)["fits"] == true);
  ++time.memory_bytes.front();
  CHECK_FALSE(time.fits());
  CHECK_THAT(text(time), Catch::Contains("that does not fit"));
}

TEST_CASE("a plan fits into the memory that a rank may take") {
  const auto path =
      std::filesystem::path(TRIREME_SOURCE_DIR) / "configs" / "machines" / "dgx-h100.conf";
  const auto config = small_config({"numerics.backend=cuda"});
  const auto plan = base::value_or_throw(plan_memory(config, tests::model_of(config), 1));
  auto keys = config.options();
  const auto fits = [&](std::int64_t limit) {
    keys.train.memory_limit = limit;
    return base::value_or_throw(plan_time(plan, keys, path)).fits();
  };
  auto needed = static_cast<std::int64_t>(engine::total_bytes(plan.ranks.front().bytes));
  for (const auto& library : plan.libraries) needed += static_cast<std::int64_t>(library.bytes);
  CHECK(fits(0));
  CHECK(fits(needed));
  CHECK_FALSE(fits(needed - 1));
}
