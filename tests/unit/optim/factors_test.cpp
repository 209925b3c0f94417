// SPDX-License-Identifier: Apache-2.0
// Shampoo and SOAP, which keep a factor for each side of a matrix.
#include "trireme/base/json.hpp"
#include "trireme/optim/matrix_rule.hpp"
#include "trireme/optim/optimizer.hpp"

#include "unit/device/backends.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <random>

using namespace trireme;
using namespace trireme::device;
using device::test::TestTensor;
using optim::RuleKind;

namespace {

optim::Rule rule_of(RuleKind kind, const base::Json& rule, const base::Json& given) {
  optim::Rule own;
  own.kind = kind;
  own.beta1 = rule["beta1"];
  own.beta2 = rule["beta2"];
  own.eps = rule["eps"];
  own.weight_decay = rule["weight_decay"];
  own.factors = {
      .root_every = given["root_every"], .epsilon = rule["epsilon"], .max_side = given["max_side"]};
  return own;
}

optim::Segment segment_of(std::int64_t rows, std::int64_t columns) {
  optim::Segment segment{.flat = {0, rows * columns}};
  segment.content = optim::Content::matrix;
  segment.shape = {rows, columns};
  return segment;
}

std::int64_t state_elements(const optim::Rule& rule, const ownership::MatrixShape& shape) {
  std::int64_t elements = 0;
  for (const auto& state : optim::make_matrix_rule(rule, DType::f32)->owner_states(shape)) {
    elements += state.shape.rows * state.shape.columns;
  }
  return elements;
}

/// The weights after all of a case's steps.
std::vector<float> updated(Kernels& kernels, const optim::Rule& rule, float rate,
                           const base::Json& given) {
  const auto segment = segment_of(given["rows"], given["columns"]);
  const auto size = segment.flat.size();
  TestTensor weights(DType::f32, {size});
  TestTensor gradient(DType::f32, {size});
  weights.set(given["before"].get<std::vector<float>>());
  auto arena = Arena::host(Purpose::optimizer, std::size_t{1} << 16);
  auto workspace = Arena::host(Purpose::workspace, std::size_t{1} << 16);
  optim::Optimizer optimizer(rule, {segment}, {0, size, state_elements(rule, segment.shape)},
                             weights, arena);
  std::int64_t step = 0;
  for (const auto& values : given["gradients"]) {
    gradient.set(values.get<std::vector<float>>());
    optimizer.update(kernels, workspace, gradient, rate, 1.0F, ++step);
  }
  CHECK(workspace.used_bytes() == 0);
  return weights.values();
}

}  // namespace

TEST_CASE("Shampoo and SOAP follow their papers over twenty steps, whole and in blocks") {
  const auto path = std::filesystem::path(TRIREME_SOURCE_DIR) / "tests/golden/optim/factors.json";
  const auto golden = base::value_or_throw(base::read_json_file(path));
  REQUIRE(golden["cases"].size() == 8);
  device::test::for_each_backend([&](Kernels& kernels) {
    for (const auto& given : golden["cases"]) {
      REQUIRE(given["gradients"].size() == 20);
      for (const auto kind : {RuleKind::shampoo, RuleKind::soap}) {
        INFO(optim::name(kind) << " " << given["rows"] << " x " << given["columns"] << ", sides to "
                               << given["max_side"]);
        const auto rule = rule_of(kind, golden["rule"], given);
        const auto after = given["after"][optim::name(kind)].get<std::vector<float>>();
        const auto ours =
            updated(kernels, rule, golden["rule"]["learning_rate"].get<float>(), given);
        const double error = device::test::relative_error(ours, after);
        UNSCOPED_INFO("error " << error);
        // SOAP knows few directions of a vector's long side, and rounding turns the others most.
        const bool vector = given["rows"] == 1 || given["columns"] == 1;
        CHECK(error < (vector && kind == RuleKind::soap ? 5e-4 : 1e-4));
      }
    }
  });
}

TEST_CASE("last bits of gradients stay last bits of SOAP's weights") {
  constexpr std::int64_t side = 32;
  constexpr std::size_t elements = side * side;
  optim::Rule rule;
  rule.kind = RuleKind::soap;
  rule.factors.root_every = 2;
  const auto segment = segment_of(side, side);
  const auto kernels = make_cpu_kernels(1);
  // Columns from 1 to 1e-2: a factor's eigenvalues are their squares.
  const auto train = [&](float last_bit) {
    TestTensor weights(DType::f32, {static_cast<std::int64_t>(elements)});
    TestTensor gradient(DType::f32, {static_cast<std::int64_t>(elements)});
    weights.set(std::vector<float>(elements, 0.0F));
    auto arena = Arena::host(Purpose::optimizer, std::size_t{1} << 18);
    auto workspace = Arena::host(Purpose::workspace, std::size_t{1} << 18);
    optim::Optimizer optimizer(rule, {segment},
                               {0, segment.flat.size(), state_elements(rule, segment.shape)},
                               weights, arena);
    // The same in each run of this test: how far bits are carried depends on them.
    std::mt19937 numbers(1);
    for (std::int64_t step = 1; step <= 20; ++step) {
      std::vector<float> values(elements);
      for (std::size_t at = 0; at < elements; ++at) {
        const auto number = static_cast<float>(numbers() >> 8U) * 0x1p-23F - 1;
        const auto share = static_cast<float>(at % side) / static_cast<float>(side - 1);
        const float sign = numbers() % 2 == 0 ? 1.0F : -1.0F;
        values[at] = number * std::pow(10.0F, -2.0F * share) * (1 + sign * last_bit);
      }
      gradient.set(values);
      optimizer.update(*kernels, workspace, gradient, 0.01F, 1.0F, step);
    }
    return weights.values();
  };
  const auto away = device::test::relative_error(train(0x1p-23F), train(0));
  INFO("weights " << away << " apart");
  CHECK(away > 0);
  // 1e-6 seen, and 1e-5 to 4e-5 with factors in fp32.
  CHECK(away < 4e-6);
}

TEST_CASE("a zero gradient moves no weight but by decay, and gives no number that is not finite") {
  const auto kernels = make_cpu_kernels(1);
  for (const auto kind : {RuleKind::shampoo, RuleKind::soap}) {
    optim::Rule rule;
    rule.kind = kind;
    rule.weight_decay = 0;
    rule.factors.root_every = 2;
    const auto segment = segment_of(6, 9);
    TestTensor weights(DType::f32, {54});
    TestTensor gradient(DType::f32, {54});
    weights.randomise(1);
    const auto before = weights.values();
    gradient.set(std::vector<float>(54, 0.0F));
    auto arena = Arena::host(Purpose::optimizer, std::size_t{1} << 16);
    auto workspace = Arena::host(Purpose::workspace, std::size_t{1} << 16);
    optim::Optimizer optimizer(rule, {segment}, {0, 54, state_elements(rule, segment.shape)},
                               weights, arena);
    for (std::int64_t step = 1; step <= 5; ++step) {
      optimizer.update(*kernels, workspace, gradient, 0.1F, 1.0F, step);
      CHECK(weights.values() == before);
    }
  }
}

TEST_CASE("what Shampoo and SOAP keep of a matrix is counted before a run") {
  optim::Rule rule;
  rule.kind = RuleKind::soap;
  rule.factors.max_side = 16;
  // Two moments, a factor in two parts and a basis of the shorter side, and the number of updates.
  CHECK(state_elements(rule, {16, 24}) == 2 * 16 * 24 + 3 * 16 * 16 + 1);
  rule.kind = RuleKind::shampoo;
  // The longer side in two blocks.
  CHECK(state_elements(rule, {16, 24}) == 2 * 16 * 24 + 2 * 16 * 16 + 2 * 24 * 12 + 1);
}
