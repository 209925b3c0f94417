// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/mesh.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace trireme;
using namespace trireme::layout;
using Catch::Matchers::Contains;

namespace {

std::vector<int> values(const std::vector<base::Rank>& ranks) {
  std::vector<int> result;
  for (const base::Rank rank : ranks) result.push_back(rank.value());
  return result;
}

std::string refusal(std::vector<AxisExtent> axes, int world_size) {
  const auto mesh = Mesh::create(std::move(axes), world_size);
  REQUIRE_FALSE(mesh.ok());
  return mesh.failure().text;
}

}  // namespace

TEST_CASE("tensor-parallel neighbours are consecutive ranks and pipeline stages lie far apart") {
  const Mesh mesh = Mesh::of(2, 3, 2);
  CHECK(mesh.world_size() == 12);
  CHECK(mesh.text() == "pp2 x dp3 x tp2");
  // Worked by hand: rank = (pp * 3 + dp) * 2 + tp.
  const base::Rank rank(9);
  CHECK(mesh.coordinate(Axis::pipeline, rank) == 1);
  CHECK(mesh.coordinate(Axis::data, rank) == 1);
  CHECK(mesh.coordinate(Axis::tensor, rank) == 1);
  CHECK(values(mesh.group(Axis::tensor, rank)) == std::vector<int>{8, 9});
  CHECK(values(mesh.group(Axis::data, rank)) == std::vector<int>{7, 9, 11});
  CHECK(values(mesh.group(Axis::pipeline, rank)) == std::vector<int>{3, 9});
  CHECK(mesh.moved(rank, Axis::data, 2) == base::Rank(11));
}

TEST_CASE("ranks that divide sequences lie between replicas and tensor-parallel ranks") {
  const Mesh mesh = Mesh::of(2, 2, 2, 3);
  CHECK(mesh.text() == "pp2 x dp2 x cp3 x tp2");
  // Worked by hand: rank = ((pp * 2 + dp) * 3 + cp) * 2 + tp.
  const base::Rank rank(21);
  CHECK(mesh.coordinate(Axis::context, rank) == 1);
  CHECK(values(mesh.group(Axis::context, rank)) == std::vector<int>{19, 21, 23});
  CHECK(values(mesh.group(replica_axes, rank)) == std::vector<int>{13, 15, 17, 19, 21, 23});
  CHECK(mesh.degree(replica_axes) == 6);
  CHECK(mesh.coordinate(replica_axes, rank) == 4);
  // Where sequences are whole there is no such axis.
  CHECK(Mesh::of(2, 2, 2).text() == "pp2 x dp2 x tp2");
  CHECK(Mesh::of(2, 2, 2).degree(Axis::context) == 1);
  CHECK(Mesh::of(2, 3, 2).coordinate(replica_axes, base::Rank(9)) == 1);
}

TEST_CASE("the groups of an axis partition the ranks of any mesh") {
  for (const Mesh& mesh : {Mesh::of(1, 1, 1), Mesh::of(2, 3, 1), Mesh::of(3, 2, 1),
                           Mesh::of(1, 2, 3), Mesh::of(2, 3, 2), Mesh::of(2, 2, 2)}) {
    for (const Axis axis : {Axis::pipeline, Axis::data, Axis::tensor}) {
      std::set<std::vector<int>> groups;
      for (int rank = 0; rank < mesh.world_size(); ++rank) {
        const auto group = mesh.group(axis, base::Rank(rank));
        CHECK(group.size() == static_cast<std::size_t>(mesh.degree(axis)));
        CHECK(std::is_sorted(group.begin(), group.end()));
        // The member stands at the place that its coordinate tells.
        const int at = mesh.coordinate(axis, base::Rank(rank));
        CHECK(group[static_cast<std::size_t>(at)] == base::Rank(rank));
        CHECK(mesh.moved(group.front(), axis, at) == base::Rank(rank));
        groups.insert(values(group));
      }
      CHECK(groups.size() == static_cast<std::size_t>(mesh.world_size() / mesh.degree(axis)));
    }
  }
}

TEST_CASE("a group over several axes is ascending and does not depend on their order") {
  const Mesh mesh = Mesh::of(2, 3, 2);
  const Axis ways[][2] = {{Axis::pipeline, Axis::tensor}, {Axis::tensor, Axis::pipeline}};
  for (const auto& axes : ways) {
    CHECK(values(mesh.group(axes, base::Rank(3))) == std::vector<int>{2, 3, 8, 9});
  }
  CHECK(values(mesh.group(std::span<const Axis>{}, base::Rank(3))) == std::vector<int>{3});
}

TEST_CASE("a mesh takes axes in any order and without some of them") {
  const auto mesh = Mesh::create({{Axis::tensor, 2}, {Axis::data, 3}}, 6);
  REQUIRE(mesh.ok());
  CHECK(mesh->coordinate(Axis::tensor, base::Rank(4)) == 1);
  CHECK(mesh->coordinate(Axis::data, base::Rank(4)) == 1);
  CHECK(mesh->degree(Axis::pipeline) == 1);
  CHECK(mesh->coordinate(Axis::pipeline, base::Rank(4)) == 0);
  CHECK(mesh->moved(base::Rank(4), Axis::pipeline, 0) == base::Rank(4));
  CHECK(values(mesh->group(Axis::pipeline, base::Rank(4))) == std::vector<int>{4});
  const auto single = Mesh::create({}, 1);
  REQUIRE(single.ok());
  CHECK(single->text() == "1 rank");
}

TEST_CASE("a product that is not the world size is refused with the nearest choices") {
  const std::string text = refusal({{Axis::pipeline, 2}, {Axis::data, 3}, {Axis::tensor, 2}}, 8);
  CHECK_THAT(text, Contains("parallel.tensor x parallel.pipeline x parallel.data = 2 x 2 x 3 = 12 "
                            "is not the world size 8"));
  CHECK_THAT(text, Contains("try 2 x 2 x 2,"));
  CHECK_THAT(text, Contains("or start 12 ranks"));
  CHECK(Mesh::create({{Axis::data, 3}}, 4).failure().code == base::ExitCode::launch);
  // Far beyond the range of an int: no overflow, and no advice to start so many.
  const int huge = 2'000'000'000;
  const std::string beyond =
      refusal({{Axis::pipeline, huge}, {Axis::data, huge}, {Axis::tensor, huge}}, 6);
  CHECK_THAT(beyond, Contains("more than 2147483647") && !Contains("start"));
}

TEST_CASE("degrees below one, repeated axes and empty worlds are refused by name") {
  CHECK_THAT(refusal({{Axis::tensor, 0}}, 6),
             Contains("parallel.tensor = 0 is below 1") && Contains("try 1, 2, 3, 6"));
  CHECK_THAT(refusal({{Axis::data, -2}}, 4), Contains("parallel.data = -2"));
  CHECK_THAT(refusal({{Axis::data, 2}, {Axis::data, 2}}, 4), Contains("dp stands twice"));
  CHECK_THAT(refusal({}, 0), Contains("world size 0"));
  CHECK_THAT(refusal({{Axis::data, 2'000'000'000}}, 2'000'000'000), Contains("is above 16777216"));
  CHECK_THAT(refusal({}, 2), Contains("start 1 rank"));
}
