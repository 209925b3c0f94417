// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/json.hpp"
#include "trireme/optim/optimizer.hpp"

#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace trireme;
using namespace trireme::device;
using device::test::TestTensor;

namespace {

optim::Rule rule_of(const base::Json& given) {
  optim::Rule rule;
  rule.kind = optim::RuleKind::muon;
  rule.weight_decay = given["weight_decay"];
  rule.muon.momentum = given["momentum"];
  rule.muon.step = given["nesterov"] ? MeanMomentum::Step::nesterov : MeanMomentum::Step::plain;
  rule.muon.scale = given["scale"] == "original" ? optim::MatrixScale::original
                                                 : optim::MatrixScale::match_rms_adamw;
  return rule;
}

/// The weights after all of a case's steps.
std::vector<float> updated(Kernels& kernels, const base::Json& given) {
  const std::int64_t rows = given["rows"];
  const std::int64_t columns = given["columns"];
  const auto size = rows * columns;
  optim::Segment segment{.flat = {0, size}};
  segment.content = optim::Content::matrix;
  segment.shape = {rows, columns};
  TestTensor weights(DType::f32, {size});
  TestTensor gradient(DType::f32, {size});
  weights.set(given["before"].get<std::vector<float>>());
  auto arena = Arena::host(Purpose::optimizer, std::size_t{1} << 16);
  auto workspace = Arena::host(Purpose::workspace, std::size_t{1} << 16);
  optim::Optimizer optimizer(rule_of(given), {segment}, {0, size}, weights, arena);
  std::int64_t step = 0;
  for (const auto& values : given["gradients"]) {
    gradient.set(values.get<std::vector<float>>());
    optimizer.update(kernels, workspace, gradient, given["learning_rate"], 1.0F, ++step);
  }
  return weights.values();
}

}  // namespace

TEST_CASE("Muon's weights are those of torch.optim.Muon, tall, wide, square, row and column") {
  const auto path = std::filesystem::path(TRIREME_SOURCE_DIR) / "tests/golden/optim/muon.json";
  const auto golden = base::value_or_throw(base::read_json_file(path));
  REQUIRE(golden["cases"].size() == 10);
  for (const bool reference : {true, false}) {
    const auto kernels = reference ? make_reference_kernels() : make_cpu_kernels(2);
    for (const auto& given : golden["cases"]) {
      INFO(kernels->name() << " " << given["rows"] << " x " << given["columns"] << " "
                           << given["scale"]);
      const auto after = given["after"].get<std::vector<float>>();
      const double error = device::test::relative_error(updated(*kernels, given), after);
      UNSCOPED_INFO("error " << error);
      CHECK(error < 1e-5);
    }
  }
}
