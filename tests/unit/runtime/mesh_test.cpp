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
  CHECK(mesh.failure().text.find("1, 2, 3, 6") != std::string::npos);
  options.tensor = 2;
  options.data = 2;
  mesh = runtime::make_mesh(options, 6);
  REQUIRE_FALSE(mesh.ok());
  CHECK(mesh.failure().code == base::ExitCode::launch);
  options.tensor = 0;
  options.data.reset();
  CHECK_FALSE(runtime::make_mesh(options, 6).ok());
}
