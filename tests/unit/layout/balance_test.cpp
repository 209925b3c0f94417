// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/balance.hpp"

#include <catch2/catch.hpp>

#include <numeric>

using trireme::layout::balance;
using trireme::layout::balanced_counts;
using trireme::layout::Placement;
using trireme::layout::PlacementKind;
using Counts = std::vector<int>;

namespace {

void must_be_best(const Counts& counts, int layers, const Placement& placement, double head) {
  REQUIRE(std::accumulate(counts.begin(), counts.end(), 0) == layers);
  const auto reached = balance(counts, placement, head);
  for (std::size_t from = 0; from < counts.size(); ++from) {
    for (std::size_t to = 0; to < counts.size(); ++to) {
      auto other = counts;
      if (--other[from] < 1) continue;
      ++other[to];
      CHECK(balance(other, placement, head) <= reached + 1e-9);
    }
  }
}

}  // namespace

TEST_CASE("without a head layers are assigned evenly") {
  CHECK(balanced_counts(8, {4, 1}, 0.0) == Counts{2, 2, 2, 2});
  CHECK(balanced_counts(11, {4, 1}, 0.0) == Counts{3, 3, 3, 2});
  CHECK(balanced_counts(10, {2, 4}, 0.0) == Counts{1, 1, 1, 2, 2, 1, 1, 1});
  CHECK(balance({2, 2, 2, 2}, {4, 1}, 0.0) == Approx(1.0));
}

TEST_CASE("a head takes the place of the layers that it weighs") {
  CHECK(balanced_counts(8, {4, 1}, 0.9) == Counts{2, 2, 2, 2});
  CHECK(balanced_counts(10, {4, 1}, 2.0) == Counts{3, 3, 3, 1});
  CHECK(balance({3, 3, 3, 1}, {4, 1}, 2.0) == Approx(1.0));
  // More than a stage's share: the last stage has the head alone.
  CHECK(balanced_counts(12, {4, 1}, 4.5) == Counts{4, 4, 4, 0});
  CHECK(balanced_counts(3, {3, 1}, 9.0) == Counts{1, 2, 0});
  // Virtual stages: the stage with the head gives a layer of its last position.
  CHECK(balanced_counts(32, {4, 2}, 1.84) == Counts{4, 4, 4, 4, 4, 4, 5, 3});
  CHECK(balance({4, 4, 4, 4, 4, 4, 5, 3}, {4, 2}, 1.84) == Approx(33.84 / 36));
  CHECK(balance({4, 4, 4, 4, 4, 4, 4, 4}, {4, 2}, 1.84) == Approx(33.84 / 39.36));
}

TEST_CASE("in the shape of a V the first stage has the head, and gives layers for it") {
  const Placement v{4, 2, PlacementKind::v_shaped};
  CHECK(balanced_counts(32, v, 1.84) == Counts{4, 4, 4, 4, 5, 4, 4, 3});
  CHECK(balance({4, 4, 4, 4, 5, 4, 4, 3}, v, 1.84) == Approx(33.84 / 36));
  CHECK(balance({4, 4, 4, 4, 4, 4, 4, 4}, v, 1.84) == Approx(33.84 / 39.36));
}

TEST_CASE("every assignment is whole, and no single layer elsewhere would balance it better") {
  for (const auto kind : {PlacementKind::round_robin, PlacementKind::v_shaped}) {
    for (const int stages : {1, 2, 3, 5}) {
      for (const int virtual_stages : {1, 2, 3}) {
        const Placement placement{stages, virtual_stages, kind};
        for (int layers = placement.positions(); layers < 40; layers += 3) {
          for (const double head : {0.0, 0.3, 1.0, 1.9, 7.5}) {
            CAPTURE(stages, virtual_stages, layers, head);
            must_be_best(balanced_counts(layers, placement, head), layers, placement, head);
          }
        }
      }
    }
  }
}
