// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/token_runs.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace trireme::layout;

TEST_CASE(
    "every token of a sequence is on one rank, and every rank has as many keys to attend to") {
  using Runs = std::vector<FlatRange>;
  CHECK(token_runs(12, 1, 0) == Runs{{0, 12}});
  CHECK(token_runs(12, 3, 0) == Runs{{0, 2}, {10, 12}});
  CHECK(token_runs(12, 3, 1) == Runs{{2, 4}, {8, 10}});
  CHECK(token_runs(12, 3, 2) == Runs{{4, 6}, {6, 8}});
  for (const int degree : {2, 3, 4}) {
    std::set<std::int64_t> seen;
    std::set<std::int64_t> keys;
    for (int rank = 0; rank < degree; ++rank) {
      std::int64_t sum = 0;
      for (const auto& run : token_runs(48, degree, rank)) {
        for (auto token = run.begin; token < run.end; ++token) {
          CHECK(seen.insert(token).second);
          sum += token + 1;
        }
      }
      keys.insert(sum);
    }
    CHECK(seen.size() == 48);
    CHECK(keys.size() == 1);
  }
}
