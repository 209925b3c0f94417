#include "trireme/runtime/cluster.hpp"

#include <catch2/catch.hpp>

using namespace trireme;

TEST_CASE("data = auto takes what tensor and pipeline leave of the world") {
  runtime::JoinOptions options;
  options.tensor = 2;
  options.pipeline = 3;
  const auto mesh = runtime::make_mesh(options, 12);
  REQUIRE(mesh.ok());
  CHECK(mesh->degree(layout::Axis::data) == 2);
  CHECK(mesh->text() == "pp3 x dp2 x tp2");
}

TEST_CASE("degrees that do not fit the world end as a mesh mismatch with the choices") {
  runtime::JoinOptions options;
  options.tensor = 4;
  auto mesh = runtime::make_mesh(options, 6);
  REQUIRE_FALSE(mesh.ok());
  CHECK(mesh.failure().code == base::ExitCode::launch);
  CHECK(mesh.failure().text ==
        "parallel.tensor x parallel.pipeline x parallel.data = 4 x 1 x 1 = 4 is not the world size "
        "6 (every rank has exactly one place in the mesh); try 6 x 1 x 1, 3 x 1 x 2, 3 x 2 x 1, or "
        "start 4 ranks");
  options.suits = [](const layout::Mesh& candidate) {
    return candidate.degree(layout::Axis::tensor) == 2;
  };
  CHECK(runtime::make_mesh(options, 6).failure().text.ends_with("; try 2 x 1 x 3, 2 x 3 x 1"));
  options.suits = [](const layout::Mesh&) { return false; };
  CHECK(runtime::make_mesh(options, 6)
            .failure()
            .text.ends_with(
                "; no degrees suit the model and the batch on so many ranks; start others"));
  options.suits = {};
  options.tensor = 2;
  options.data = 2;
  mesh = runtime::make_mesh(options, 6);
  REQUIRE_FALSE(mesh.ok());
  CHECK(mesh.failure().code == base::ExitCode::launch);
  options.tensor = 0;
  options.data.reset();
  CHECK_FALSE(runtime::make_mesh(options, 6).ok());
}
