// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/arrange.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using layout::arrange;

TEST_CASE("data that is not given takes what tensor and pipeline leave of the world") {
  const auto mesh = arrange({.tensor = 2, .pipeline = 3}, 12);
  REQUIRE(mesh.ok());
  CHECK(mesh->degree(layout::Axis::data) == 2);
  CHECK(mesh->text() == "pp3 x dp2 x tp2");
  CHECK(arrange({}, 5)->text() == "pp1 x dp5 x tp1");
}

TEST_CASE("degrees that do not fit the world end as a mesh mismatch with the choices") {
  auto mesh = arrange({.tensor = 4}, 6);
  REQUIRE_FALSE(mesh.ok());
  CHECK(mesh.failure().code == base::ExitCode::launch);
  CHECK(mesh.failure().text ==
        "parallel.tensor x parallel.pipeline x parallel.data = 4 x 1 x 1 = 4 is not the world size "
        "6 (every rank has exactly one place in the mesh); try 6 x 1 x 1, 3 x 1 x 2, 3 x 2 x 1, or "
        "start 4 ranks");
  // Other facts decide what is proposed: heads that only two or one can share, layers.
  CHECK(arrange({.tensor = 4, .heads = 2}, 6)
            .failure()
            .text.ends_with("; try 2 x 1 x 3, 2 x 3 x 1, 1 x 1 x 6"));
  CHECK(arrange({.tensor = 4,
                 .virtual_stages = 1,
                 .stage_layers = std::vector<std::int64_t>{},
                 .layers = 1,
                 .heads = 2},
                6)
            .failure()
            .text.ends_with("; try 2 x 1 x 3, 1 x 1 x 6"));
  CHECK(arrange({.tensor = 4, .heads = 5, .micro_batch = 1, .global_batch = 7}, 6)
            .failure()
            .text.ends_with("; try 1 x 6 x 1"));
  CHECK(arrange({.tensor = 4,
                 .virtual_stages = 1,
                 .stage_layers = std::vector<std::int64_t>{},
                 .layers = 5,
                 .heads = 5,
                 .micro_batch = 1,
                 .global_batch = 7},
                6)
            .failure()
            .text.ends_with(
                "; no degrees suit the model and the batch on so many ranks; start others"));
  mesh = arrange({.tensor = 2, .data = 2}, 6);
  REQUIRE_FALSE(mesh.ok());
  CHECK(mesh.failure().code == base::ExitCode::launch);
  CHECK_FALSE(arrange({.tensor = 0}, 6).ok());
  CHECK_FALSE(arrange({}, (1 << 24) + 1).ok());
}

TEST_CASE("a mesh describes the arrangement that it was made of") {
  for (const auto& asked : {layout::Mesh::of(3, 2, 4), layout::Mesh::of(1, 5, 1)}) {
    layout::ParallelArrangement described{.heads = 8};
    describe(asked, described);
    CHECK(described.world_size == asked.world_size());
    CHECK(described.heads == 8);
    const auto again = arrange(described, asked.world_size());
    REQUIRE(again.ok());
    CHECK(*again == asked);
  }
}
