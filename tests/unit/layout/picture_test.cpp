// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/picture.hpp"

#include <catch2/catch.hpp>

#include <numeric>

using namespace trireme;
using namespace trireme::layout;
using Catch::Matchers::Contains;

namespace {

std::vector<base::Rank> ranks(std::initializer_list<int> values) {
  std::vector<base::Rank> result;
  for (const int value : values) result.emplace_back(value);
  return result;
}

}  // namespace

TEST_CASE("lists of ranks are short") {
  CHECK(ranks_text(ranks({})) == "");
  CHECK(ranks_text(ranks({4})) == "4");
  CHECK(ranks_text(ranks({4, 5})) == "4,5");
  CHECK(ranks_text(ranks({4, 5, 6})) == "4-6");
  CHECK(ranks_text(ranks({0, 4, 8, 12})) == "0,4,8,12");
  CHECK(ranks_text(ranks({0, 2, 4, 6, 8, 10, 12})) == "0,2,4,..,12");
}

TEST_CASE("the picture of a mesh shows stages side by side and tensor-parallel groups together") {
  CHECK(mesh_text(Mesh::of(2, 2, 3)) ==
        R"(pp2 x dp2 x tp3: 12 ranks; in brackets one tp group, neighbours in the world

      pp 0    pp 1
dp 0  [0-2]   [6-8]
dp 1  [3-5]   [9-11]

rank  pp  dp  tp  pp group  dp group  tp group
   0   0   0   0  0,6       0,3       0-2
   1   0   0   1  1,7       1,4       0-2
   2   0   0   2  2,8       2,5       0-2
   3   0   1   0  3,9       0,3       3-5
   4   0   1   1  4,10      1,4       3-5
   5   0   1   2  5,11      2,5       3-5
   6   1   0   0  0,6       6,9       6-8
   7   1   0   1  1,7       7,10      6-8
   8   1   0   2  2,8       8,11      6-8
   9   1   1   0  3,9       6,9       9-11
  10   1   1   1  4,10      7,10      9-11
  11   1   1   2  5,11      8,11      9-11
)");
}

TEST_CASE("pictures of large meshes say what they leave out") {
  const std::string text = mesh_text(Mesh::of(20, 32, 8), 4);
  CHECK_THAT(text, Contains("(4 more columns)") && Contains("(16 more rows)") &&
                       Contains("(5116 more ranks)"));
}

TEST_CASE("meshes of fewer axes have pictures too") {
  const auto two = Mesh::create({{Axis::data, 2}, {Axis::tensor, 2}}, 4);
  REQUIRE(two.ok());
  CHECK_THAT(mesh_text(*two), Contains("  dp 0   dp 1\n  [0,1]  [2,3]\n"));
  const auto none = Mesh::create({}, 1);
  REQUIRE(none.ok());
  CHECK_THAT(mesh_text(*none), Contains("1 rank") && Contains("[0]"));
}

TEST_CASE("the JSON of a mesh tells coordinates and groups") {
  const base::Json json = mesh_json(Mesh::of(2, 3, 2));
  CHECK(json["world_size"] == 12);
  CHECK(json["axes"].dump() ==
        R"([{"axis":"pp","degree":2},{"axis":"dp","degree":3},{"axis":"tp","degree":2}])");
  CHECK(json["ranks"][9].dump() == R"({"rank":9,"coordinates":{"pp":1,"dp":1,"tp":1}})");
  CHECK(json["groups"]["dp"].dump() == "[[0,2,4],[1,3,5],[6,8,10],[7,9,11]]");
  CHECK(json["groups"]["pp"].size() == 6);
}

TEST_CASE("the JSON of a schedule tells its timeline and its costs") {
  const auto schedule = make_schedule(ScheduleKind::one_forward_one_backward, 2, 2, 1);
  REQUIRE(schedule.ok());
  const auto simulation = simulate(*schedule, {});
  REQUIRE(simulation.ok());
  const base::Json json = schedule_json(*schedule, *simulation);
  CHECK(json["kind"] == "1f1b");
  CHECK(json["makespan"] == 9.0);
  CHECK(json["peak_live_total"].dump() == "[2,1]");
  CHECK(json["timeline"][1][1].dump() ==
        R"({"action":"backward","micro_batch":0,"virtual_stage":0,"begin":2.0,"end":4.0})");
}
