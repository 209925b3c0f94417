// SPDX-License-Identifier: Apache-2.0
#include "predict/layer_operations.hpp"

#include "machines.hpp"
#include "time_text.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <utility>

using namespace trireme;
using namespace trireme::predict;
using config::Activation;

namespace {

auto exchanges_in(const std::vector<Operation>& list) {
  return std::count_if(list.begin(), list.end(), [](const Operation& each) {
    return each.part == Part::tensor && each.kind != Operation::Kind::join;
  });
}

/// Operations of a layer on two tensor-parallel ranks that divide rows, too.
struct DividedLayer {
  Machine machine = tests::plain_machine();
  Workload workload = divided();
  Placement placement{machine, 2};
  Links links{machine, placement.node_size()};
  OperationCosts costs{machine, workload.program.precision, 1};
  LayerOperations operations{machine, workload, placement, costs, links};

  static Workload divided() {
    auto workload = tests::small_workload();
    workload.degrees.tensor = 2;
    workload.program.sequence_parallel = true;
    return workload;
  }
};

/// Gathers and scatters of a layer's forward and backward.
auto exchanges(const config::ActivationSet& again) {
  const DividedLayer layer;
  return exchanges_in(layer.operations.forward()) +
         exchanges_in(layer.operations.backward(again, BackwardHalf::both));
}

/// Those of the two halves of backward.
auto exchanges_of_halves(const config::ActivationSet& again) {
  const DividedLayer layer;
  return std::pair(exchanges_in(layer.operations.backward(again, BackwardHalf::input)),
                   exchanges_in(layer.operations.backward_weight()));
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

TEST_CASE("the weights' half of backward gathers all rows that it reads again") {
  // Two gathers and two scatters; of two gradients and two inputs the rows are gathered.
  CHECK(exchanges_of_halves({}) == std::pair(4L, 4L));
  // The input of the product that is computed again.
  CHECK(exchanges_of_halves({Activation::mlp}) == std::pair(5L, 4L));
  CHECK(exchanges_of_halves({Activation::attention}) == std::pair(4L, 4L));
  CHECK(exchanges_of_halves({Activation::layer}) == std::pair(7L, 4L));
}

TEST_CASE("the halves of backward compute what it computes as a whole") {
  const DividedLayer layer;
  for (const auto& again : {config::ActivationSet{}, config::ActivationSet{Activation::mlp},
                            config::ActivationSet{Activation::layer}}) {
    const auto whole = sum_of(layer.operations.backward(again, BackwardHalf::both));
    const auto input = sum_of(layer.operations.backward(again, BackwardHalf::input));
    const auto weight = sum_of(layer.operations.backward_weight());
    CHECK(weight.compute > Time::zero());
    CHECK(whole.compute == input.compute + weight.compute);
  }
}

TEST_CASE("a layer's backward waits for all but what weights' gradients hide") {
  DividedLayer layer;
  const auto beside = sum_of(layer.operations.backward({}, BackwardHalf::both));
  layer.workload.program.tensor_overlap = TensorOverlap::none;
  const LayerOperations waiting(layer.machine, layer.workload, layer.placement, layer.costs,
                                layer.links);
  const auto one_by_one = sum_of(waiting.backward({}, BackwardHalf::both));
  CHECK(beside.compute == one_by_one.compute);
  CHECK(beside.tensor < one_by_one.tensor);
  // Each of the six alike: the gather of the output's gradient has nothing beside it.
  CHECK(beside.tensor >= one_by_one.tensor / 6);
}

TEST_CASE("products beside a collective lack the processors that it takes") {
  DividedLayer layer;
  layer.machine.tiles = {
      .processors = 10, .rows = 1, .columns = 1, .half_rate_terms = 0, .for_collectives = 0};
  const auto with = [&](int for_collectives) {
    layer.machine.tiles.for_collectives = for_collectives;
    const LayerOperations operations(layer.machine, layer.workload, layer.placement, layer.costs,
                                     layer.links);
    return sum_of(operations.backward({}, BackwardHalf::both));
  };
  const auto fewer = with(2);
  const auto none = with(0);
  CHECK(fewer.compute > none.compute);
  CHECK(fewer.tensor == none.tensor);
}
