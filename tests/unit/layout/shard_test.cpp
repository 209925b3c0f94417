// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/box.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

using namespace trireme;
using namespace trireme::layout;

namespace {

const std::vector<Mesh>& meshes() {
  static const std::vector<Mesh> all = {Mesh::of(1, 1, 1), Mesh::of(1, 1, 4), Mesh::of(1, 2, 3),
                                        Mesh::of(1, 3, 2), Mesh::of(2, 3, 2), Mesh::of(2, 1, 6),
                                        Mesh::of(1, 1, 5), Mesh::of(2, 2, 2)};
  return all;
}

/// One of each kind that a transformer has; sizes do not divide evenly by most degrees.
const std::vector<TensorSpec>& specs() {
  static const std::vector<TensorSpec> all = {
      {"norm.weight", {24}, {}},
      {"embedding.weight", {101, 24}, {{Axis::tensor, 0}}},
      {"query.weight", {6 * 4, 24}, {{Axis::tensor, 0, 4}}},
      {"key.weight", {2 * 4, 24}, {{Axis::tensor, 0, 4, 2}}},
      {"down.weight", {24, 52}, {{Axis::tensor, 1}}},
      {"bias", {6 * 4}, {{Axis::tensor, 0, 4}}},
      {"short_last_unit", {22}, {{Axis::tensor, 0, 4}}},
      {"two_axes", {12, 30}, {{Axis::tensor, 0}, {Axis::data, 1}}},
      {"nested", {48}, {{Axis::tensor, 0}, {Axis::data, 0}}},
      {"scalar", {}, {}},
  };
  return all;
}

std::vector<int> held_by_how_many(const TensorSpec& spec, const std::vector<Box>& boxes) {
  std::vector<int> counts(static_cast<std::size_t>(element_count(spec.shape)), 0);
  for (const Box& box : boxes) {
    for (const CopyRun& run : copy_runs(box, whole(spec.shape))) {
      for (std::int64_t at = 0; at < run.count; ++at) {
        ++counts[static_cast<std::size_t>(run.destination + at)];
      }
    }
  }
  return counts;
}

}  // namespace

TEST_CASE("the ranks of any mesh cover every tensor, each element as often as its replicas say") {
  for (const Mesh& mesh : meshes()) {
    for (const TensorSpec& spec : specs()) {
      INFO(spec.name << " on " << mesh.text());
      // Ranks that agree on all other axes: their boxes alone must cover a part that all share.
      std::vector<Box> boxes;
      std::vector<int> expected(static_cast<std::size_t>(element_count(spec.shape)), 0);
      for (int rank = 0; rank < mesh.world_size(); ++rank) {
        const Box box = shard_box(spec, mesh, base::Rank(rank));
        int replicas = 1;
        for (const Axis axis : {Axis::pipeline, Axis::data, Axis::tensor}) {
          replicas *= replica_count(spec, mesh, axis, base::Rank(rank));
        }
        for (const CopyRun& run : copy_runs(box, whole(spec.shape))) {
          for (std::int64_t at = 0; at < run.count; ++at) {
            expected[static_cast<std::size_t>(run.destination + at)] = replicas;
          }
        }
        boxes.push_back(box);
      }
      const auto held = held_by_how_many(spec, boxes);
      CHECK(held == expected);
      CHECK(std::all_of(held.begin(), held.end(), [](int count) { return count > 0; }));
    }
  }
}

TEST_CASE("parts begin at units and differ by at most one unit") {
  const TensorSpec query{"query", {7 * 4, 3}, {{Axis::tensor, 0, 4}}};
  const Mesh mesh = Mesh::of(1, 1, 3);
  // Seven heads of four rows on three ranks: 2, 2, 3 heads, worked by hand.
  CHECK(shard_box(query, mesh, base::Rank(0)) == Box{{0, 0}, {8, 3}});
  CHECK(shard_box(query, mesh, base::Rank(1)) == Box{{8, 0}, {8, 3}});
  CHECK(shard_box(query, mesh, base::Rank(2)) == Box{{16, 0}, {12, 3}});
}

TEST_CASE("fewer key heads than tensor-parallel ranks are replicated on neighbours") {
  const TensorSpec key{"key", {2 * 4}, {{Axis::tensor, 0, 4, 2}}};
  const Mesh mesh = Mesh::of(1, 2, 4);
  for (int rank = 0; rank < 8; ++rank) {
    const std::int64_t offset = rank % 4 < 2 ? 0 : 4;
    CHECK(shard_box(key, mesh, base::Rank(rank)) == Box{{offset}, {4}});
  }
  CHECK(replica_count(key, mesh, Axis::tensor) == 2);
  CHECK(replica_count(key, mesh, Axis::data) == 2);
  CHECK(replica_count(key, mesh, Axis::pipeline) == 1);
}

TEST_CASE("a rank's key head is the one that its query heads attend with") {
  // 12 query heads, 3 key heads: query head q attends with key head q / 4.
  for (const int degree : {1, 3, 6, 12}) {
    const Mesh mesh = Mesh::of(1, 1, degree);
    const TensorSpec query{"query", {12}, {{Axis::tensor, 0}}};
    const TensorSpec key{"key", {3}, {{Axis::tensor, 0, 1, 3}}};
    for (int rank = 0; rank < degree; ++rank) {
      const Box queries = shard_box(query, mesh, base::Rank(rank));
      const Box keys = shard_box(key, mesh, base::Rank(rank));
      CHECK(queries.offset[0] / 4 == keys.offset[0]);
      CHECK((queries.offset[0] + queries.length[0] - 1) / 4 == keys.offset[0] + keys.length[0] - 1);
    }
  }
}

TEST_CASE("unequal replicas are told for each rank") {
  const TensorSpec key{"key", {4}, {{Axis::tensor, 0, 1, 4}}};
  const Mesh mesh = Mesh::of(1, 1, 6);  // parts 0 0 1 2 2 3
  const int expected[] = {2, 2, 1, 2, 2, 1};
  for (int rank = 0; rank < 6; ++rank) {
    CHECK(replica_count(key, mesh, Axis::tensor, base::Rank(rank)) == expected[rank]);
  }
}

TEST_CASE("more ranks than units leave some ranks without elements") {
  const TensorSpec heads{"heads", {2 * 3}, {{Axis::tensor, 0, 3}}};
  const Mesh mesh = Mesh::of(1, 1, 4);
  std::int64_t sum = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const std::int64_t count = element_count(shard_box(heads, mesh, base::Rank(rank)));
    CHECK((count == 0 || count == 3));
    sum += count;
  }
  CHECK(sum == 6);
}
