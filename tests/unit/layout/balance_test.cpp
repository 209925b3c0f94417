// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/balance.hpp"

#include <catch2/catch.hpp>

#include <numeric>

using trireme::layout::balance;
using trireme::layout::balanced_counts;
using Counts = std::vector<int>;

TEST_CASE("without a head layers are assigned evenly") {
  CHECK(balanced_counts(8, 4, 1, 0.0) == Counts{2, 2, 2, 2});
  CHECK(balanced_counts(11, 4, 1, 0.0) == Counts{3, 3, 3, 2});
  CHECK(balanced_counts(10, 2, 4, 0.0) == Counts{1, 1, 1, 2, 2, 1, 1, 1});
  CHECK(balance({2, 2, 2, 2}, 4, 0.0) == Approx(1.0));
}

TEST_CASE("a head takes the place of the layers that it weighs") {
  CHECK(balanced_counts(8, 4, 1, 0.9) == Counts{2, 2, 2, 2});
  CHECK(balanced_counts(10, 4, 1, 2.0) == Counts{3, 3, 3, 1});
  CHECK(balance({3, 3, 3, 1}, 4, 2.0) == Approx(1.0));
  // More than a stage's share: the last stage has the head alone.
  CHECK(balanced_counts(12, 4, 1, 4.5) == Counts{4, 4, 4, 0});
  CHECK(balanced_counts(3, 3, 1, 9.0) == Counts{1, 2, 0});
  // Virtual stages: the stage with the head gives a layer of its last position.
  CHECK(balanced_counts(32, 4, 2, 1.84) == Counts{4, 4, 4, 4, 4, 4, 5, 3});
  CHECK(balance({4, 4, 4, 4, 4, 4, 5, 3}, 4, 1.84) == Approx(33.84 / 36));
  CHECK(balance({4, 4, 4, 4, 4, 4, 4, 4}, 4, 1.84) == Approx(33.84 / 39.36));
}

TEST_CASE("every assignment is whole, and no single layer elsewhere would balance it better") {
  for (const int stages : {1, 2, 3, 5}) {
    for (const int virtual_stages : {1, 2, 3}) {
      for (int layers = stages * virtual_stages; layers < 40; layers += 3) {
        for (const double head : {0.0, 0.3, 1.0, 1.9, 7.5}) {
          CAPTURE(stages, virtual_stages, layers, head);
          const auto counts = balanced_counts(layers, stages, virtual_stages, head);
          REQUIRE(std::accumulate(counts.begin(), counts.end(), 0) == layers);
          const auto reached = balance(counts, stages, head);
          for (std::size_t from = 0; from < counts.size(); ++from) {
            for (std::size_t to = 0; to < counts.size(); ++to) {
              auto other = counts;
              if (--other[from] < 1) continue;
              ++other[to];
              CHECK(balance(other, stages, head) <= reached + 1e-9);
            }
          }
        }
      }
    }
  }
}
