// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/schedule.hpp"
#include "trireme/layout/unit_chunks.hpp"

#include <catch2/catch.hpp>

using namespace trireme::layout;
using Catch::Matchers::Contains;

namespace {

std::vector<int> counts(int layers, int stages, int virtual_stages) {
  const auto assigned = assign_layers(layers, {stages, virtual_stages}, {});
  REQUIRE(assigned.ok());
  std::vector<int> result;
  for (int position = 0; position < stages * virtual_stages; ++position) {
    const LayerRange range = (*assigned)[static_cast<std::size_t>(position % stages)]
                                        [static_cast<std::size_t>(position / stages)];
    result.push_back(range.end - range.begin);
  }
  return result;
}

std::string refusal(int layers, int stages, int virtual_stages, const std::vector<int>& given) {
  const auto assigned = assign_layers(layers, {stages, virtual_stages}, given);
  REQUIRE_FALSE(assigned.ok());
  return assigned.failure().text;
}

}  // namespace

TEST_CASE("layers are assigned evenly and the remainder goes to the middle") {
  CHECK(counts(8, 4, 1) == std::vector<int>{2, 2, 2, 2});
  CHECK(counts(9, 4, 1) == std::vector<int>{2, 3, 2, 2});
  CHECK(counts(10, 4, 1) == std::vector<int>{2, 3, 3, 2});
  CHECK(counts(11, 4, 1) == std::vector<int>{3, 3, 3, 2});
  CHECK(counts(7, 3, 1) == std::vector<int>{2, 3, 2});
  CHECK(counts(10, 2, 4) == std::vector<int>{1, 1, 1, 2, 2, 1, 1, 1});
}

TEST_CASE("chunks take turns over the stages in the model's order") {
  const auto assigned = assign_layers(8, {2, 2}, {});
  REQUIRE(assigned.ok());
  CHECK((*assigned)[0] == std::vector<LayerRange>{{0, 2}, {4, 6}});
  CHECK((*assigned)[1] == std::vector<LayerRange>{{2, 4}, {6, 8}});
}

TEST_CASE("chunks in the shape of a V go down the stages and up again") {
  const auto assigned = assign_layers(6, {3, 2, PlacementKind::v_shaped}, {1, 1, 1, 1, 1, 1});
  REQUIRE(assigned.ok());
  CHECK((*assigned)[0] == std::vector<LayerRange>{{0, 1}, {5, 6}});
  CHECK((*assigned)[1] == std::vector<LayerRange>{{1, 2}, {4, 5}});
  CHECK((*assigned)[2] == std::vector<LayerRange>{{2, 3}, {3, 4}});
}

TEST_CASE("given counts are used, and the ends may hold the embedding or the head alone") {
  const auto assigned = assign_layers(6, {4, 1}, {0, 4, 2, 0});
  REQUIRE(assigned.ok());
  CHECK((*assigned)[0] == std::vector<LayerRange>{{0, 0}});
  CHECK((*assigned)[1] == std::vector<LayerRange>{{0, 4}});
  CHECK((*assigned)[2] == std::vector<LayerRange>{{4, 6}});
  CHECK((*assigned)[3] == std::vector<LayerRange>{{6, 6}});
}

TEST_CASE("assignments that cannot be are refused with one that can") {
  CHECK_THAT(refusal(4, 8, 1, {}),
             Contains("parallel.pipeline = 8 is more than model.num_hidden_layers = 4") &&
                 Contains("try parallel.pipeline = 1, 2, 4"));
  CHECK_THAT(refusal(4, 4, 2, {}),
             Contains("parallel.pipeline = 4 times parallel.virtual_stages = 2 is more than") &&
                 Contains("try parallel.pipeline = 1, 2"));
  CHECK_THAT(refusal(8, 4, 1, {2, 2, 2}), Contains("has 3 entries") && Contains("try 2, 2, 2, 2"));
  CHECK_THAT(refusal(8, 4, 1, {2, 2, 2, 3}), Contains("sums to 9") && Contains("try 2, 2, 2, 2"));
  CHECK_THAT(refusal(8, 4, 1, {4, 0, 2, 2}), Contains("0 at position 1"));
  CHECK_THAT(refusal(8, 4, 1, {-1, 5, 2, 2}), Contains("-1 at position 0"));
  CHECK_THAT(refusal(2, 2, 1, {2'000'000'000, 2'000'000'000}), Contains("sums to 4000000000"));
  CHECK_THAT(refusal(0, 2, 1, {}), Contains("model.num_hidden_layers = 0"));
  CHECK_THAT(refusal(8, 2'000'000'000, 2'000'000'000, {}), Contains("is more than"));
}

TEST_CASE("units of a whole model are its layers, with the table before and the head behind") {
  CHECK(unit_chunks(2) == std::vector<LayerRange>{{0, 0}, {0, 1}, {1, 2}, {2, 2}});
}
