// SPDX-License-Identifier: Apache-2.0
#include "optim/micro_groups.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace trireme;
using optim::Content;
using optim::form_groups;
using optim::MatrixGroup;
using optim::Segment;

namespace {

/// A matrix of which `holder` of two ranks has its rows, the first one more than the second.
Segment matrix(std::int64_t rows, std::int64_t columns, int owner, int holder) {
  Segment segment;
  segment.content = Content::matrix;
  segment.shape = {rows, columns};
  segment.owner = owner;
  const auto first = (rows + 1) / 2;
  segment.parts = {{{0, 0}, {first, columns}}, {{first, 0}, {rows - first, columns}}};
  const auto held = layout::element_count(segment.parts[static_cast<std::size_t>(holder)]);
  segment.flat = {0, held};
  return segment;
}

/// Segments that one of two ranks holds.
std::vector<Segment> segments(int holder) {
  Segment elements;
  elements.flat = {0, 1000};
  return {matrix(4, 6, 0, holder), elements,
          matrix(8, 5, 1, holder), matrix(4, 6, 1, holder),
          matrix(3, 5, 0, holder), matrix(8, 5, 0, holder)};
}

std::vector<std::size_t> names(const MatrixGroup& group) {
  std::vector<std::size_t> all;
  for (const auto& member : group.members) all.push_back(member.segment);
  return all;
}

}  // namespace

TEST_CASE("one exchange takes matrices of all shapes, where they fit") {
  for (const int rank : {0, 1}) {
    const auto groups = form_groups(segments(rank), 2, rank, {1000, 1000});
    REQUIRE(groups.size() == 1);
    // Larger ones first, alike ones together.
    CHECK(names(groups[0]) == std::vector<std::size_t>{2, 5, 0, 3, 4});
    // The first rank holds the most of what it owns itself: 2 x 5 + 4 x 5 + 2 x 6 of 3, 8 and 4
    // rows.
    CHECK(groups[0].region == 2 * 5 + 4 * 5 + 2 * 6);
    CHECK(groups[0].owned_elements == (rank == 0 ? 40 + 24 + 15 : 40 + 24));
  }
}

TEST_CASE("a group closes when one owner has no room") {
  for (const int rank : {0, 1}) {
    const auto groups = form_groups(segments(rank), 2, rank, {64, 1000});
    REQUIRE(groups.size() == 2);
    CHECK(names(groups[0]) == std::vector<std::size_t>{2, 5, 0, 3});
    CHECK(names(groups[1]) == std::vector<std::size_t>{4});
    CHECK(groups[1].region == 2 * 5);
    CHECK(groups[1].owned.size() == (rank == 0 ? 1 : 0));
  }
  // Smaller than any matrix: one of each owner at a time.
  const auto lone = form_groups(segments(0), 2, 0, {1, 1});
  CHECK(lone.size() == 3);
  for (const auto& group : lone) {
    for (const auto& run : group.owned) CHECK(run.segments.size() == 1);
  }
}

TEST_CASE("parts of a group lie in their owner's region without overlap") {
  for (const int rank : {0, 1}) {
    const auto all = segments(rank);
    for (const auto& group : form_groups(all, 2, rank, {64, 1000})) {
      std::set<std::int64_t> used;
      for (const auto& [segment, begin] : group.members) {
        const auto& own = all[segment];
        CHECK(begin / group.region == own.owner);
        CHECK((begin + own.flat.size() - 1) / group.region == own.owner);
        for (auto at = begin; at < begin + own.flat.size(); ++at) CHECK(used.insert(at).second);
      }
    }
  }
}

TEST_CASE("runs are of one shape, and cover what is owned") {
  auto all = segments(0);
  for (auto& segment : all) {
    segment.parts.clear();
    segment.owner = 0;
    segment.flat = {0, std::max<std::int64_t>(1, segment.shape.rows * segment.shape.columns)};
  }
  all[3].blocks = 2;
  const auto groups = form_groups(all, 1, 0, {10000, 45});
  REQUIRE(groups.size() == 1);
  std::int64_t next = 0;
  for (const auto& run : groups[0].owned) {
    CHECK(run.begin == next);
    for (const auto segment : run.segments) {
      CHECK(all[segment].shape == run.shape);
      CHECK(all[segment].blocks == run.blocks);
      next += run.shape.rows * run.shape.columns;
    }
  }
  CHECK(next == groups[0].owned_elements);
  // Two of 8 x 5 do not fit one run, and of those of 4 x 6 one has blocks.
  CHECK(groups[0].owned.size() == 5);
}
