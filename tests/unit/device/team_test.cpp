// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/runtime/team.hpp"

#include "trireme/base/error.hpp"

#include <catch2/catch.hpp>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace trireme;
using device::cpu::Team;

double process_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// System ids of a team's threads: each part waits here until all have begun, so each has its own.
std::vector<pid_t> threads_of(Team& team) {
  std::vector<pid_t> ids(static_cast<std::size_t>(team.size()));
  std::atomic<int> begun{0};
  team.run(team.size(), [&](int part) {
    ids[static_cast<std::size_t>(part)] = ::gettid();
    ++begun;
    while (begun < team.size()) std::this_thread::yield();
  });
  return ids;
}

/// Keeps this process on one core while it lives.
class OneCore {
 public:
  OneCore() {
    REQUIRE(::sched_getaffinity(0, sizeof before_, &before_) == 0);
    cpu_set_t first;
    CPU_ZERO(&first);
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &before_) == 0) continue;
      CPU_SET(core, &first);
      break;
    }
    REQUIRE(::sched_setaffinity(0, sizeof first, &first) == 0);
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;
  ~OneCore() { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

}  // namespace

TEST_CASE("each part of a call is done once, however threads wait and whoever disturbs them") {
  for (const auto spin : {0, 5, 1000}) {
    CAPTURE(spin);
    Team team(5, device::spins_for(std::chrono::microseconds(spin)));
    REQUIRE(team.size() == 5);
    std::atomic<bool> ends{false};
    std::thread neighbour([&] {
      while (!ends) __builtin_ia32_pause();
    });
    std::array<int, 5> done{};
    std::array<int, 5> wanted{};
    for (int call = 0; call < 4000; ++call) {
      const int parts = 1 + call % 5;
      for (int part = 0; part < parts; ++part) ++wanted[static_cast<std::size_t>(part)];
      // Plain additions: a part that two threads took, or that is not done yet, would show.
      team.run(parts, [&](int part) { ++done[static_cast<std::size_t>(part)]; });
      if (done != wanted) FAIL("call " << call);
      if (call % 500 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    ends = true;
    neighbour.join();
  }
}

TEST_CASE("parts run beside each other, each on a thread of its own") {
  Team team(4);
  const auto ids = threads_of(team);
  CHECK(ids[0] == ::gettid());
  CHECK(std::set<pid_t>(ids.begin(), ids.end()).size() == 4);
}

TEST_CASE("threads without work leave their cores to others within microseconds") {
  Team team(3);
  threads_of(team);
  const double before = process_seconds();
  for (int call = 0; call < 50; ++call) {
    team.run(3, [](int) {});
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  }
  // A thread that spins for as long as the caller sleeps takes 400 ms here; load makes it less,
  // never more.
  CHECK(process_seconds() - before < 0.060);
}

TEST_CASE("a thread that waits for one that does not run leaves its core to others") {
  Team team(2);
  threads_of(team);
  const double before = process_seconds();
  for (int call = 0; call < 10; ++call) {
    std::atomic<bool> begun{false};
    team.run(2, [&](int part) {
      // Wait: the caller would do the part of a thread that has not come.
      while (part == 0 && !begun) std::this_thread::yield();
      if (part == 0) return;
      begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(9));
    });
  }
  // A thread that spins all the while takes 90 ms.
  CHECK(process_seconds() - before < 0.045);
}

TEST_CASE("a spin goes on while the awaited thread runs, and this one keeps its core") {
  using device::cpu::AwaitedThread;
  const auto awaits = GENERATE(AwaitedThread::computes, AwaitedThread::calls);
  // Moments, not time: those without a core add none.
  const auto moments = [&](std::optional<clockid_t> awaited,
                           device::cpu::Disturbance& disturbance) {
    device::cpu::Spinning spinning({}, awaits, disturbance);
    int passed = 0;
    while (spinning.pass([&] { return awaited; })) ++passed;
    return passed;
  };
  // A thread of its own, and this one, which runs for sure.
  std::atomic<bool> ends{false};
  std::atomic<clockid_t> asleep{};
  std::thread sleeper([&] {
    asleep = device::cpu::own_cpu_clock();
    ends.wait(false);
  });
  while (asleep == clockid_t{}) std::this_thread::yield();
  int runs = 0;
  int sleeps = 0;
  int disturbed = 0;
  // Others take cores, too: one attempt of many has what it needs.
  const auto is_clear = [&] { return runs > 10 * sleeps && runs > 10 * disturbed; };
  for (int attempt = 0; attempt < 10 || (attempt < 500 && !is_clear()); ++attempt) {
    device::cpu::Disturbance none{};
    device::cpu::Disturbance now{std::chrono::steady_clock::now()};
    runs = std::max(runs, moments(device::cpu::own_cpu_clock(), none));
    sleeps = std::max(sleeps, moments(asleep.load(), none));
    disturbed = std::max(disturbed, moments(device::cpu::own_cpu_clock(), now));
  }
  ends = true;
  ends.notify_one();
  sleeper.join();
  CAPTURE(runs, sleeps, disturbed);
  CHECK(sleeps > 0);
  CHECK(runs > 10 * sleeps);
  CHECK(runs > 10 * disturbed);
}

TEST_CASE("nobody waits for a thread that gets no core: the caller does its part") {
  const OneCore one;
  Team team(3);
  const auto ids = threads_of(team);
  const sched_param none{};
  for (const auto id : ids) {
    if (id != ::gettid()) REQUIRE(::sched_setscheduler(id, SCHED_IDLE, &none) == 0);
  }
  int by_caller = 0;
  for (int call = 0; call < 300; ++call) {
    std::atomic<int> mine{0};
    team.run(3, [&](int part) { mine += part > 0 && ::gettid() == ids[0] ? 1 : 0; });
    by_caller += mine;
  }
  CHECK(by_caller > 300);
}

TEST_CASE("threads that a node does not give are named, and those that started end") {
  const pid_t child = ::fork();
  if (child == 0) {
    // Root may always start threads: an ordinary user may not where there are too many already.
    const rlimit none{0, 0};
    const bool limited = ::setrlimit(RLIMIT_NPROC, &none) == 0 && ::setuid(65534) == 0;
    if (!limited) ::_exit(3);
    try {
      const Team team(4);
    } catch (const base::Error& error) {
      const std::string text = error.what();
      ::_exit(text.find("compute thread 1 of 4") == std::string::npos ||
                      text.find("numerics.threads") == std::string::npos
                  ? 1
                  : 0);
    }
    ::_exit(2);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 3) {
    WARN("only root can become a user without room for threads");
    return;
  }
  CHECK(WEXITSTATUS(status) == 0);
}
