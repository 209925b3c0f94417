// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/save_interval.hpp"

#include "small_model.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::plan;

TEST_CASE("failures and saves are those of a machine's file, and of the nodes that ranks fill") {
  auto machine = tests::small_machine(std::int64_t{1} << 36);
  machine.node.gpus = 8;
  CHECK(nodes_of(machine, 1) == 1);
  CHECK(nodes_of(machine, 8) == 1);
  CHECK(nodes_of(machine, 9) == 2);
  CHECK_FALSE(failure_times(machine, Tenure::own, 2));
  machine.site.mtbf_node_days = 10;
  machine.site.restart_seconds = 30;
  const auto failures = failure_times(machine, Tenure::own, 5).value();
  CHECK(failures.between == Approx(2 * 86400));
  CHECK(failures.restart == 30);
  CHECK_FALSE(failure_times(machine, Tenure::spot, 5));
  machine.site.spot_mtbf_node_days = 5;
  CHECK(failure_times(machine, Tenure::spot, 5)->between == Approx(86400));
  machine.node.gpus = 0;
  CHECK(nodes_of(machine, 64) == 1);
}

TEST_CASE("a save stops training for the copy, or for all of it") {
  auto machine = tests::small_machine(std::int64_t{1} << 36);
  RunSize run{.ranks = 4, .steps = 1, .state_bytes = 8e9, .saves_beside = true};
  CHECK_FALSE(save_times(machine, run, 2));
  machine.node.disk_write = 1e9;
  CHECK(save_times(machine, run, 2)->stall == Approx(4));
  CHECK(save_times(machine, run, 2)->write == 0);
  machine.node.host_copy = 1e10;
  CHECK(save_times(machine, run, 2)->stall == Approx(0.4));
  CHECK(save_times(machine, run, 2)->write == Approx(4));
  run.saves_beside = false;
  CHECK(save_times(machine, run, 2)->stall == Approx(4));
}

TEST_CASE("an interval is the one with which failures cost least, within bounds") {
  // sqrt(2 * 50 s * 10^4 s) is 1,000 s.
  const predict::SaveTimes save{50, 0};
  CHECK(save_interval(save, {.between = 1e4}) ==
        Approx(predict::best_interval(save, {.between = 1e4})));
  CHECK(save_interval(save, {.between = 1e4}) == Approx(1000).epsilon(0.05));
  CHECK(save_interval({.stall = 1e-3}, {.between = 1e3}) == shortest_save_interval);
  CHECK(save_interval(save, {.between = 1e9}) == longest_save_interval);
  // Storage that takes longer than that is not asked for a save while it writes one.
  const double slow = 2 * longest_save_interval;
  CHECK(save_interval({.stall = 1, .write = slow}, {.between = 1e9}) == slow);
  CHECK(save_interval({.stall = 1, .write = 500}, {.between = 1e3}) == 500);
}
