#include "trireme/layout/reshard.hpp"

#include "trireme/base/format.hpp"
#include "trireme/layout/flat.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace trireme;
using namespace trireme::layout;
using Catch::Matchers::Contains;

namespace {

constexpr std::int64_t poison = -1;

/// The elements of a box of a tensor whose every element holds its own row-major index.
std::vector<std::int64_t> contents(const Shape& shape, const Box& box) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(element_count(box)), poison);
  for (const CopyRun& run : copy_runs(whole(shape), box)) {
    for (std::int64_t at = 0; at < run.count; ++at) {
      result[static_cast<std::size_t>(run.destination + at)] = run.source + at;
    }
  }
  return result;
}

void copy(const Box& from_box, const std::vector<std::int64_t>& from, const Box& to_box,
          std::vector<std::int64_t>& to) {
  for (const CopyRun& run : copy_runs(from_box, to_box)) {
    for (std::int64_t at = 0; at < run.count; ++at) {
      auto& target = to.at(static_cast<std::size_t>(run.destination + at));
      REQUIRE(target == poison);  // each element once
      target = from.at(static_cast<std::size_t>(run.source + at));
    }
  }
}

/// Carries out the reads of one wanted box on in-memory arrays and checks the outcome.
void execute(const Shape& shape, std::span<const PlacedBox> held, const Box& wanted,
             const std::vector<Read>& reads) {
  std::vector<std::int64_t> received(static_cast<std::size_t>(element_count(wanted)), poison);
  for (const Read& read : reads) {
    REQUIRE(std::find(held.begin(), held.end(), PlacedBox{read.source, read.held}) != held.end());
    REQUIRE(intersect(read.held, read.box) == read.box);
    std::vector<std::int64_t> message(static_cast<std::size_t>(element_count(read.box)), poison);
    copy(read.held, contents(shape, read.held), read.box, message);
    copy(read.box, message, wanted, received);
  }
  REQUIRE(received == contents(shape, wanted));
}

const std::vector<Mesh>& meshes() {
  static const std::vector<Mesh> all = {Mesh::of(1, 1, 1), Mesh::of(1, 2, 3), Mesh::of(1, 3, 2),
                                        Mesh::of(2, 1, 2), Mesh::of(2, 3, 2), Mesh::of(3, 1, 4),
                                        Mesh::of(2, 2, 2)};
  return all;
}

const std::vector<TensorSpec>& specs() {
  static const std::vector<TensorSpec> all = {
      {"norm.weight", {10}, {}},
      {"embedding.weight", {23, 6}, {{Axis::tensor, 0}}},
      {"key.weight", {2 * 3, 5}, {{Axis::tensor, 0, 3, 2}}},
      {"down.weight", {5, 17}, {{Axis::tensor, 1}}},
      {"expert.weight", {4, 6, 5}, {{Axis::data, 0}, {Axis::tensor, 2}}},
      {"scale", {}, {}},
  };
  return all;
}

}  // namespace

TEST_CASE("moves between any two meshes give every rank its shard, each element once") {
  for (const Mesh& source : meshes()) {
    for (const Mesh& destination : meshes()) {
      SourceLoad load;
      for (const TensorSpec& spec : specs()) {
        INFO(spec.name << " from " << source.text() << " to " << destination.text());
        const Residence from{source, {source.degree(Axis::pipeline) - 1}};
        const Residence to{destination, {0}};
        const auto reads = reshard(spec, from, to, load);
        REQUIRE(reads.ok());
        REQUIRE(reads->size() == static_cast<std::size_t>(destination.world_size()));
        const auto held = placed_boxes(spec, from);
        for (int rank = 0; rank < destination.world_size(); ++rank) {
          const auto& mine = (*reads)[static_cast<std::size_t>(rank)];
          if (destination.coordinate(Axis::pipeline, base::Rank(rank)) != 0) {
            CHECK(mine.empty());
          } else {
            execute(spec.shape, held, shard_box(spec, destination, base::Rank(rank)), mine);
          }
        }
      }
    }
  }
}

TEST_CASE("two-by-three to three-by-two moves a matrix as worked by hand") {
  const TensorSpec spec{"weight", {6, 2}, {{Axis::tensor, 0}}};
  SourceLoad load;
  const auto reads = reshard(spec, {Mesh::of(1, 2, 3), {}}, {Mesh::of(1, 3, 2), {}}, load);
  REQUIRE(reads.ok());
  // Rank 0 wants rows 0 to 3: rows 0 and 1 are its own, row 2 lies with ranks 1 and 4.
  const auto& first = (*reads)[0];
  REQUIRE(first.size() == 2);
  CHECK(first[0] == Read{base::Rank(0), Box{{0, 0}, {2, 2}}, Box{{0, 0}, {2, 2}}});
  CHECK(first[1] == Read{base::Rank(1), Box{{2, 0}, {2, 2}}, Box{{2, 0}, {1, 2}}});
}

TEST_CASE("a layout moves to itself without a message") {
  for (const Mesh& mesh : meshes()) {
    for (const TensorSpec& spec : specs()) {
      SourceLoad load;
      const auto reads = reshard(spec, {mesh, {}}, {mesh, {}}, load);
      REQUIRE(reads.ok());
      for (int rank = 0; rank < mesh.world_size(); ++rank) {
        for (const Read& read : (*reads)[static_cast<std::size_t>(rank)]) {
          CHECK(read.source == base::Rank(rank));
          CHECK(read.box == shard_box(spec, mesh, base::Rank(rank)));
        }
      }
    }
  }
}

TEST_CASE("reads of replicas are spread over the replicas") {
  const TensorSpec spec{"weight", {12}, {}};
  // Ranks 0 to 3 hold the tensor; 2 x 4 new ones, none of them the same rank, want it.
  std::vector<PlacedBox> wanted;
  for (int rank = 10; rank < 18; ++rank) wanted.push_back({base::Rank(rank), whole(spec.shape)});
  SourceLoad load;
  REQUIRE(plan_reads(spec.name, placed_boxes(spec, {Mesh::of(1, 4, 1), {}}), wanted, load).ok());
  CHECK(load == SourceLoad{24, 24, 24, 24});
}

TEST_CASE("the load carries over tensors, so that one reader does not drain one replica") {
  SourceLoad load;
  for (int tensor = 0; tensor < 8; ++tensor) {
    const TensorSpec spec{base::format("layer{}", tensor), {6}, {}};
    const std::vector<PlacedBox> wanted = {{base::Rank(7), whole(spec.shape)}};
    REQUIRE(plan_reads(spec.name, placed_boxes(spec, {Mesh::of(1, 4, 1), {}}), wanted, load).ok());
  }
  CHECK(load == SourceLoad{12, 12, 12, 12});
}

namespace {

/// What every rank holds when the optimizer's state is cut over data-parallel ranks (ZeRO level 1):
/// pieces of flat buffers, as boxes.
std::vector<std::vector<PlacedBox>> zero_boxes(const std::vector<TensorSpec>& tensors,
                                               const Mesh& mesh) {
  std::vector<std::vector<PlacedBox>> held(tensors.size());
  for (int value = 0; value < mesh.world_size(); ++value) {
    const base::Rank rank(value);
    std::vector<Box> boxes;
    std::vector<std::int64_t> sizes;
    for (const TensorSpec& spec : tensors) {
      boxes.push_back(shard_box(spec, mesh, rank));
      sizes.push_back(element_count(boxes.back()));
    }
    const FlatLayout flat = flat_layout(sizes, mesh.degree(Axis::data), 64, 4);
    for (ShardPiece& piece : pieces_of_shard(flat, boxes, mesh.coordinate(Axis::data, rank))) {
      held[piece.tensor].push_back({rank, std::move(piece.box)});
    }
  }
  return held;
}

}  // namespace

TEST_CASE("optimizer state cut over data-parallel ranks moves between any two meshes") {
  const std::vector<TensorSpec> tensors = {
      {"norm.weight", {10}, {}},
      {"key.weight", {2 * 3, 5}, {{Axis::tensor, 0, 3, 2}}},
      {"embedding.weight", {23, 6}, {{Axis::tensor, 0}}},
      {"down.weight", {5, 17}, {{Axis::tensor, 1}}},
  };
  for (const Mesh& source : meshes()) {
    for (const Mesh& destination : meshes()) {
      INFO(source.text() << " to " << destination.text());
      const auto held = zero_boxes(tensors, source);
      const auto wanted = zero_boxes(tensors, destination);
      SourceLoad load;
      for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
        const TensorSpec& spec = tensors[tensor];
        const auto reads = plan_reads(spec.name, held[tensor], wanted[tensor], load);
        REQUIRE(reads.ok());
        for (std::size_t at = 0; at < wanted[tensor].size(); ++at) {
          execute(spec.shape, held[tensor], wanted[tensor][at].box, (*reads)[at]);
        }
      }
    }
  }
}

TEST_CASE("an incomplete source is refused by tensor and box") {
  const std::vector<PlacedBox> held = {{base::Rank(0), {{0, 0}, {4, 3}}},
                                       {base::Rank(1), {{4, 0}, {4, 2}}}};
  const std::vector<PlacedBox> wanted = {{base::Rank(5), {{2, 0}, {6, 3}}}};
  SourceLoad load;
  const auto reads = plan_reads("layers.3.weight", held, wanted, load);
  REQUIRE_FALSE(reads.ok());
  CHECK(reads.failure().code == base::ExitCode::checkpoint);
  CHECK_THAT(reads.failure().text,
             Contains("elements [4:8, 2:3] of tensor layers.3.weight") && Contains("rank 5"));
  CHECK(plan_reads("empty", {}, std::vector<PlacedBox>{{base::Rank(0), {{3}, {0}}}}, load).ok());
}
