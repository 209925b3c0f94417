// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/rank_order.hpp"

#include "trireme/base/format.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace trireme;
using layout::Axis;
using layout::Mesh;
using layout::NetworkCost;
using layout::NetworkPath;

namespace {

/// `per_node` processes on each node in a row; nodes by their leaf switch.
std::vector<NetworkPath> in_blocks(const std::vector<std::string>& leaves, int per_node) {
  std::vector<NetworkPath> paths;
  for (std::size_t node = 0; node < leaves.size(); ++node) {
    for (int task = 0; task < per_node; ++task) {
      paths.push_back({"core", leaves[node], base::format("n{}", node)});
    }
  }
  return paths;
}

/// The leaf switches that each ring of data parallelism touches.
std::vector<std::size_t> switches_of_rings(const Mesh& mesh, const std::vector<NetworkPath>& paths,
                                           const std::vector<int>& launched) {
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    if (mesh.coordinate(Axis::data, base::Rank(rank)) != 0) continue;
    std::set<std::string> leaves;
    for (const auto member : mesh.group(Axis::data, base::Rank(rank))) {
      leaves.insert(paths[static_cast<std::size_t>(launched[member.index()])][1]);
    }
    counts.push_back(leaves.size());
  }
  return counts;
}

void check_sound(const Mesh& mesh, const std::vector<NetworkPath>& paths,
                 const layout::RankOrder& order) {
  auto sorted = order.launched;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t index = 0; index < sorted.size(); ++index) {
    REQUIRE(sorted[index] == static_cast<int>(index));
  }
  CHECK(order.launched.front() == 0);
  CHECK(order.cost == layout::network_cost(mesh, paths, order.launched));
  CHECK(order.cost <= order.as_launched);
  // On each node the launcher's order stands.
  std::map<NetworkPath, int> last;
  for (const int process : order.launched) {
    const auto [place, first] = last.try_emplace(paths[static_cast<std::size_t>(process)], -1);
    CHECK(place->second < process);
    place->second = process;
  }
}

}  // namespace

TEST_CASE("network distance counts switches up to the one above both") {
  const NetworkPath one{"core", "s1", "n1"};
  CHECK(layout::network_distance(one, one) == 0);
  CHECK(layout::network_distance(one, {"core", "s1", "n2"}) == 1);
  CHECK(layout::network_distance(one, {"core", "s2", "n3"}) == 2);
  CHECK(layout::network_distance(one, {"other", "s2", "n3"}) == 3);
  CHECK(layout::network_distance({"n1"}, {"n2"}) == 1);
}

TEST_CASE("the launcher's order is kept where it costs no more") {
  const auto mesh = Mesh::of(2, 2, 2);
  const auto paths = in_blocks({"s1", "s1", "s2", "s2"}, 2);
  const auto order = layout::order_ranks(mesh, paths);
  CHECK_FALSE(order.changed());
  CHECK(order.cost == order.as_launched);
  // By hand: four tp pairs inside nodes; dp pairs of units (n0, n1) and (n2, n3) at 1 for each of
  // two tp coordinates; pp pairs across the core at 2 for each of four.
  CHECK(order.cost == NetworkCost{{0, 0, 4, 8}});
}

TEST_CASE("tasks dealt out cyclically come together in their nodes") {
  const auto mesh = Mesh::of(1, 4, 2);
  std::vector<NetworkPath> paths;
  for (int task = 0; task < 8; ++task) paths.push_back({base::format("n{}", task % 4)});
  const auto order = layout::order_ranks(mesh, paths);
  CHECK(order.launched == std::vector{0, 4, 1, 5, 2, 6, 3, 7});
  CHECK(order.cost.on(layout::Axis::tensor) == 0);
  CHECK(order.as_launched.on(layout::Axis::tensor) == 4);
  check_sound(mesh, paths, order);
}

TEST_CASE("rings of data parallelism stay inside switches with uneven numbers of nodes") {
  // Slurm numbers nodes by name: 3 on s1, 2 on s2, 3 on s3. Rings of two, one node a member.
  const auto mesh = Mesh::of(4, 2, 2);
  const auto paths = in_blocks({"s1", "s1", "s1", "s2", "s2", "s3", "s3", "s3"}, 2);
  const auto order = layout::order_ranks(mesh, paths);
  REQUIRE(order.changed());
  check_sound(mesh, paths, order);
  // As launched, rings (n2, n3) and (n4, n5) cross the core; one crossing cannot be avoided.
  CHECK(order.as_launched.on(layout::Axis::data) == 2 * (1 + 2 + 2 + 1));
  CHECK(order.cost.on(layout::Axis::data) == 2 * (1 + 1 + 1 + 2));
  auto crossed = switches_of_rings(mesh, paths, order.launched);
  CHECK(std::count(crossed.begin(), crossed.end(), 1U) == 6);
  // Stages along the network: s1, what is left of s1 and s3, s2, s3.
  CHECK(order.launched == std::vector{0, 1, 2, 3, 4, 5, 14, 15, 6, 7, 8, 9, 10, 11, 12, 13});
}

TEST_CASE("nodes of a switch that Slurm numbers apart come together") {
  const auto mesh = Mesh::of(2, 2, 1);
  const auto paths = in_blocks({"a", "b", "a", "b"}, 1);
  const auto order = layout::order_ranks(mesh, paths);
  CHECK(order.launched == std::vector{0, 2, 1, 3});
  CHECK(order.cost == NetworkCost{{0, 0, 2, 4}});
  check_sound(mesh, paths, order);
}

TEST_CASE("a node that holds several tp groups, and one that holds a part of one") {
  // 3 tasks a node, tp 2: one group must span two nodes, on one switch.
  const auto mesh = Mesh::of(1, 3, 2);
  const auto paths = in_blocks({"s1", "s1"}, 3);
  const auto order = layout::order_ranks(mesh, paths);
  check_sound(mesh, paths, order);
  CHECK(order.cost.on(layout::Axis::tensor) == 1);
}

TEST_CASE("order is sound on any tree, mesh and dealing of tasks") {
  std::mt19937 random(20261121);
  for (int round = 0; round < 200; ++round) {
    const auto pick = [&](int count) { return static_cast<int>(random() % unsigned(count)) + 1; };
    const auto mesh = Mesh::of(pick(4), pick(4), pick(3));
    std::vector<NetworkPath> paths;
    for (int rank = 0; rank < mesh.world_size(); ++rank) {
      const int node = pick(6);
      NetworkPath path;
      if (node != 3) path = {"core", node % 2 == 0 ? "s0" : "s1"};
      path.push_back(base::format("n{}", node));
      paths.push_back(std::move(path));
    }
    INFO("round " << round << ", mesh " << mesh.text());
    check_sound(mesh, paths, layout::order_ranks(mesh, paths));
  }
}
