// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/processor_time.hpp"

#include <catch2/catch.hpp>
#include <unistd.h>

using namespace trireme;
using telemetry::core_numbers;

TEST_CASE("ticks of each core are read, and the sum of all is no core") {
  const auto cores = telemetry::core_ticks_in(
      "cpu  1 2 3 4 5 6 7 8 9 10\n"
      "cpu0 100 20 3 4000 500 6 7 80 90 10\n"
      "cpu17 1 1 1 1\n"
      "cpux 1 1 1 1\ncpu-1 1 1 1\ncpu99999 1 1 1 1\n"
      "intr 37123098 0 0\nctxt 5\n");
  REQUIRE(cores.size() == 2);
  // Guests are in the first two numbers already.
  CHECK(cores.at(0).busy == 123);
  CHECK(cores.at(0).interrupts == 13);
  CHECK(cores.at(0).stolen == 80);
  CHECK(cores.at(0).idle == 4500);
  // Older kernels write fewer numbers.
  CHECK(cores.at(17).busy == 3);
  CHECK(cores.at(17).idle == 1);
  CHECK(cores.at(17).stolen == 0);
  for (const auto* text : {"", "cpu0", "\n\n", "cpu0 a b\nbtime 7"}) {
    for (const auto& [core, ticks] : telemetry::core_ticks_in(text)) CHECK(ticks.busy == 0);
  }
}

TEST_CASE("lists of cores are read as the kernel writes them") {
  CHECK(core_numbers("0-3,8\n") == std::vector<int>{0, 1, 2, 3, 8});
  CHECK(core_numbers("5") == std::vector<int>{5});
  CHECK(core_numbers("2,0-1,1") == std::vector<int>{0, 1, 2});
  for (const auto* text : {"", "a", "3-1", "1-", "-2", "0-99999999", "1,,2", "1 2"}) {
    CAPTURE(text);
    CHECK(core_numbers(text).empty());
  }
}

TEST_CASE("files of limits are those of the process's cgroup and of all around it") {
  const auto texts = [](const char* cgroups) {
    std::vector<std::string> names;
    for (const auto& file : telemetry::limit_files_in(cgroups)) names.push_back(file.string());
    return names;
  };
  CHECK(texts("0::/slurm/job_1/step_0\n") ==
        std::vector<std::string>{"/sys/fs/cgroup/slurm/job_1/step_0/cpu.stat",
                                 "/sys/fs/cgroup/slurm/job_1/cpu.stat",
                                 "/sys/fs/cgroup/slurm/cpu.stat", "/sys/fs/cgroup/cpu.stat"});
  for (const auto* text :
       {"9:memory:/a\n4:cpu,cpuacct:/a:b\n3:cpuset:/\n", "4:cpuacct,cpu:/a:b\n"}) {
    CHECK(texts(text) == std::vector<std::string>{"/sys/fs/cgroup/cpu/a:b/cpu.stat",
                                                  "/sys/fs/cgroup/cpu/cpu.stat"});
  }
  CHECK(texts("0::/") == std::vector<std::string>{"/sys/fs/cgroup/cpu.stat"});
  CHECK(texts("0::/../..").back() == "/sys/fs/cgroup/cpu.stat");
  CHECK(texts("junk\n:\n").empty());
}

TEST_CASE("what limits took is read in either version of cgroups, and without a limit nothing") {
  using std::chrono::microseconds;
  CHECK(telemetry::throttled_in(
            "usage_usec 9\nnr_periods 4\nnr_throttled 2\nthrottled_usec 77\n") == microseconds(77));
  CHECK(telemetry::throttled_in("nr_periods 4\nnr_throttled 2\nthrottled_time 77000\n") ==
        microseconds(77));
  for (const auto* text : {"", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n", "usage_usec 9\n",
                           "nr_periods many\nthrottled_usec 5"}) {
    CAPTURE(text);
    CHECK_FALSE(telemetry::throttled_in(text));
  }
}

TEST_CASE("shares are the same when they are unpacked") {
  telemetry::ProcessorShares shares{30.25, 1.5};
  shares.cores[0] = {1, 0.25, 0.5};
  shares.cores[4095] = {0.125, 0, 0};
  shares.throttled = 31.5;
  const auto bytes = telemetry::packed(shares);
  CHECK(bytes.size() == 28);
  const auto again = telemetry::unpacked(bytes);
  CHECK(again.seconds == 30.25);
  CHECK(again.own == 1.5);
  CHECK(again.throttled == 31.5);
  REQUIRE(again.cores.size() == 2);
  CHECK(again.cores.at(0).busy == 1);
  CHECK(again.cores.at(0).stolen == 0.25);
  CHECK(again.cores.at(0).interrupts == 0.5);
  CHECK(again.cores.at(4095).busy == 0.125);
  CHECK(telemetry::unpacked(bytes.substr(1)).seconds == 0);
  CHECK(telemetry::unpacked(bytes.substr(4)).seconds == 0);
  CHECK(telemetry::unpacked("").cores.empty());
}

TEST_CASE("shares between two readings are those of each core, and ticks that fall count nothing") {
  const auto ticks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  telemetry::ProcessorCounters earlier;
  earlier.own_seconds = 5;
  earlier.cores[0] = {1000, 10, 0, 1000};
  earlier.cores[1] = {1000, 10, 0, 1000};
  earlier.cores[2] = {7, 0, 0, 0};
  auto later = earlier;
  later.time += std::chrono::seconds(10);
  later.own_seconds = 20;
  later.cores[0] = {1000 + 5 * ticks, 10 + 2 * ticks, ticks, 1000 + 2 * ticks};
  later.cores[1] = {999, 9, 0, 1000 + 10 * ticks};
  later.cores[3] = {1, 1, 1, 1};
  const auto shares = telemetry::shares_between(earlier, later);
  CHECK(shares.seconds == 10);
  CHECK(shares.own == Approx(1.5));
  // The third counts nothing, the fourth is new.
  REQUIRE(shares.cores.size() == 2);
  CHECK(shares.cores.at(0).busy == Approx(0.5));
  CHECK(shares.cores.at(0).interrupts == Approx(0.2));
  CHECK(shares.cores.at(0).stolen == Approx(0.1));
  CHECK(shares.cores.at(1).busy == 0);
}

TEST_CASE("of limits around each other the one counts that took most in the interval") {
  using namespace std::chrono_literals;
  telemetry::ProcessorCounters earlier;
  // An outer group was held back for hours, before the run.
  earlier.throttled = {{"/outer", 36'000s}, {"/outer/job", 0s}, {"/outer/gone", 9s}};
  auto later = earlier;
  later.time += 30s;
  later.throttled = {{"/outer", 36'000s}, {"/outer/job", 60s}, {"/outer/new", 15s}};
  CHECK(telemetry::shares_between(earlier, later).throttled == Approx(2));
  CHECK(telemetry::shares_between(later,
                                  [&] {
                                    auto last = later;
                                    last.time += 10s;
                                    last.throttled.erase("/outer/job");
                                    return last;
                                  }())
            .throttled == 0);
}

TEST_CASE("a meter that has not begun measures nothing") {
  telemetry::ProcessorMeter meter(telemetry::ProcessorMeter::Reads::node_too);
  CHECK_FALSE(meter.take());
}
