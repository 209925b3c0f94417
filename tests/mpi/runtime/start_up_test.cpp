// SPDX-License-Identifier: Apache-2.0
// Phases of a start as it tells them, against waits whose length is known.
#include "trireme/runtime/start_up.hpp"

#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <thread>

using namespace trireme;
using namespace std::chrono_literals;
using runtime::StartUp;
using testing::mpi;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double seconds_of(const std::vector<StartUp::Phase>& phases, const std::string& name) {
  for (const auto& phase : phases) {
    if (phase.name == name) return phase.seconds;
  }
  FAIL("there is no phase " << name);
  return 0;
}

}  // namespace

TEST_CASE("each phase is as long as its slowest rank took, and all of them are the whole start") {
  const auto world = mpi().make_world({comm::Backend::mpi, 60});
  const bool is_slow = world->rank() == world->size() - 1;
  StartUp start_up;
  const auto earliest = Clock::now();
  start_up.reached("program");
  const auto latest = Clock::now();
  if (is_slow) std::this_thread::sleep_for(60ms);
  start_up.reached("slow");
  start_up.reached("nothing");
  if (world->rank() == 0) std::this_thread::sleep_for(40ms);
  const double least = seconds_since(latest);
  // The last 30 ms were something else.
  start_up.reached("before", "meeting", 0.03);
  const double most = seconds_since(earliest);
  const auto phases = start_up.slowest(*world);
  REQUIRE(phases.size() == 6);
  CHECK(phases.back().name == "all");
  CHECK(seconds_of(phases, "slow") >= 0.06);
  CHECK(seconds_of(phases, "meeting") == Approx(0.03));
  CHECK(seconds_of(phases, "before") >= 0.0099);
  // Since the system has started this process, and not since yesterday.
  CHECK(seconds_of(phases, "program") > 0);
  const auto all = phases.back().seconds;
  double sum = 0;
  for (const auto& phase : phases) sum += phase.seconds;
  sum -= all;
  CHECK(all <= sum + 1e-4);
  CHECK(all >= seconds_of(phases, "program"));
  if (world->size() > 1) return;
  // One rank: nobody else's time.
  CHECK(all == Approx(sum).epsilon(1e-4));
  const auto after_program = all - seconds_of(phases, "program");
  CHECK(after_program >= least - 1e-4);
  CHECK(after_program <= most + 1e-4);
}

TEST_CASE("a start is told by its longest phases, in seconds") {
  CHECK(runtime::text({{"program", 0.5}, {"state", 1.25}, {"all", 1.75}}) ==
        "1.750 s, most of it state 1.250, program 0.500");
  CHECK(runtime::text({{"a", 1}, {"b", 2}, {"c", 0.5}, {"d", 3}, {"all", 6.5}}) ==
        "6.500 s, most of it d 3.000, b 2.000, a 1.000");
  CHECK(runtime::text({}).empty());
}
