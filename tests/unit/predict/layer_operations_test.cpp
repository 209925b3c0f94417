// SPDX-License-Identifier: Apache-2.0
#include "predict/layer_operations.hpp"

#include "machines.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace trireme;
using namespace trireme::predict;
using config::Activation;

namespace {

auto exchanges_in(const std::vector<Operation>& list) {
  return std::count_if(list.begin(), list.end(),
                       [](const Operation& each) { return each.part == Part::tensor; });
}

/// Gathers and scatters of a layer's forward and backward.
auto exchanges(const config::ActivationSet& again) {
  const auto machine = tests::plain_machine();
  auto workload = tests::small_workload();
  workload.degrees.tensor = 2;
  workload.program.sequence_parallel = true;
  const Placement placement(machine, 2);
  const Links links(machine, placement.node_size());
  const OperationCosts costs(machine, workload.program.precision, 1);
  const LayerOperations operations(machine, workload, placement, costs, links);
  return exchanges_in(operations.forward()) + exchanges_in(operations.backward(again));
}

}  // namespace

TEST_CASE("a layer exchanges rows as often as the engine's, whatever it computes again") {
  // Two gathers and two scatters there and back, and two gathers for the gradients of weights.
  CHECK(exchanges({}) == 10);
  CHECK(exchanges({Activation::mlp}) == 10);
  CHECK(exchanges({Activation::norms}) == 10);
  CHECK(exchanges({Activation::attention}) == 10);
  // Two gathers for both, and a scatter behind attention; none behind the last product.
  CHECK(exchanges({Activation::layer}) == 11);
}
