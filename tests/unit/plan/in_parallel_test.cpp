// SPDX-License-Identifier: Apache-2.0
#include "plan/search/in_parallel.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <stdexcept>
#include <vector>

using trireme::plan::in_parallel;

TEST_CASE("work is done once, whatever the threads, and its first failure is thrown on") {
  for (const int threads : {1, 2, 7}) {
    CAPTURE(threads);
    std::vector<int> done(100);
    in_parallel(done.size(), threads, [&](std::size_t index, int) { ++done[index]; });
    CHECK(std::count(done.begin(), done.end(), 1) == 100);
    in_parallel(0, threads, [&](std::size_t, int) { FAIL("there is nothing to do"); });
    CHECK_THROWS_AS(in_parallel(100, threads,
                                [](std::size_t index, int) {
                                  if (index == 3) throw std::runtime_error("three");
                                }),
                    std::runtime_error);
  }
}
