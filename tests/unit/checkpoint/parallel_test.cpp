// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/parallel.hpp"

#include <catch2/catch.hpp>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>

using namespace trireme;

TEST_CASE("ranks that share cores divide the threads that read") {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  CHECK(checkpoint::threads_of_part(1) == std::min(cores, 4));
  CHECK(checkpoint::threads_of_part(cores) == 1);
  CHECK(checkpoint::threads_of_part(1000 * cores) == 1);
  CHECK(checkpoint::thread_count(7) == 7);
  CHECK(checkpoint::thread_count(0) == checkpoint::threads_of_part(1));
}

TEST_CASE("ranks share cores whose sets of cores are the same") {
  const auto own = checkpoint::id_of_cores();
  CHECK(own == checkpoint::id_of_cores());
  if (std::thread::hardware_concurrency() < 2) return;
  std::uint64_t of_one = own;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    if (::sched_setaffinity(0, sizeof one, &one) == 0) of_one = checkpoint::id_of_cores();
  }).join();
  CHECK(of_one != own);
}

TEST_CASE("the first failure is told before other threads are waited for, and is the one thrown") {
  std::atomic<int> told{0};
  std::atomic<bool> abandoned{false};
  const auto work = [&](std::size_t index) {
    if (index == 0) throw std::runtime_error("the first part");
    // A part that waits for its turn.
    abandoned.wait(false);
    throw std::runtime_error("given up");
  };
  const auto on_failure = [&] {
    ++told;
    abandoned = true;
    abandoned.notify_all();
  };
  CHECK_THROWS_WITH(checkpoint::parallel_for(6, 4, work, on_failure), "the first part");
  CHECK(told == 1);
}
