// SPDX-License-Identifier: Apache-2.0
#include "trireme/predict/bound.hpp"

#include "trireme/predict/step.hpp"

#include "machines.hpp"
#include "time_text.hpp"

#include <catch2/catch.hpp>

#include <initializer_list>
#include <random>

using namespace trireme;
using namespace trireme::predict;
using tests::large_workload;
using tests::plain_machine;
using tests::small_workload;

namespace {

/// Equal on every machine, unlike the distributions of the standard library.
class Dice {
 public:
  template <typename Value>
  Value one_of(std::initializer_list<Value> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(engine_() % values.size()));
  }
  bool coin() { return engine_() % 2 == 0; }

 private:
  std::mt19937_64 engine_{39};
};

Machine thrown_machine(Dice& dice) {
  auto machine = plain_machine();
  machine.node.gpus = dice.one_of({0, 2, 4, 8});
  machine.node.cores = dice.one_of({1, 2, 4});
  machine.node.memory_rate = dice.one_of({1e9, 1e11});
  machine.share.link = dice.one_of({0.5, 1.0, 1.0, 2.0, 10.0});
  machine.inside.latency = dice.one_of({0.0, 2e-6});
  machine.inside.hop = dice.one_of({0.0, 1e-6});
  machine.network.rate = dice.one_of({0.05e9, 0.25e9, 5e9});
  machine.network.latency = dice.one_of({0.0, 4e-6});
  machine.network.hop = dice.one_of({0.0, 3e-6});
  machine.nics = dice.one_of({1, 2});
  if (dice.coin()) {
    machine.tiles = {.processors = 10,
                     .rows = 8,
                     .columns = 8,
                     .half_rate_terms = 4,
                     .for_collectives = dice.one_of({0, 3})};
  }
  if (dice.one_of({1, 2, 3}) == 1) {
    machine.inside.messages = {{64, 1e-6}, {4096, 2e-6}, {65536, 3e-5}};
    machine.network.messages = {{64, 4e-6}, {1024, 3e-6}, {65536, 2e-4}};
  }
  return machine;
}

config::Recompute thrown_recompute(Dice& dice) {
  using config::Activation;
  config::Recompute recompute;
  for (const auto kind : {Activation::norms, Activation::attention, Activation::mlp}) {
    if (dice.coin()) recompute.add(kind);
  }
  if (dice.coin()) recompute.add(Activation::layer, dice.one_of({1, 2, 100}));
  return recompute;
}

Workload thrown_workload(Dice& dice) {
  auto workload = small_workload();
  workload.shape.layers = dice.one_of({4, 8, 9});
  workload.shape.tied_head = dice.coin();
  workload.shape.vocabulary = dice.one_of({64, 1000});
  workload.degrees = {.tensor = dice.one_of({1, 2, 4}),
                      .context = dice.one_of({1, 1, 2}),
                      .data = dice.one_of({1, 2, 3, 8}),
                      .pipeline = dice.one_of({1, 2, 4})};
  auto& micro = workload.micro_batches;
  micro.count = dice.one_of({1, 3, 4, 8});
  micro.sequences = dice.one_of({1, 2});
  micro.schedule = static_cast<layout::ScheduleKind>(dice.one_of({0, 1, 1, 2, 2, 3, 4, 5}));
  if (layout::has_virtual_stages(micro.schedule)) micro.virtual_stages = 2;
  auto& program = workload.program;
  program.recompute = thrown_recompute(dice);
  program.sequence_parallel = dice.coin();
  program.fused_passes = dice.coin();
  program.gathers_rows_again = dice.coin();
  program.tensor_overlap =
      dice.one_of({TensorOverlap::none, TensorOverlap::weights, TensorOverlap::pieces});
  program.overlaps_messages = dice.coin();
  program.overlaps_data = dice.coin();
  program.overlaps_gathers = dice.coin();
  program.head_backward_in_forward = dice.coin();
  program.sharding =
      dice.one_of({Sharding::none, Sharding::optimizer, Sharding::gradients, Sharding::parameters});
  program.gathers_into_ring = dice.coin();
  program.bucket_elements = dice.one_of({100, 3000, 1000000});
  program.launch_gap = dice.one_of({0.0, 1e-7, 1e-5});
  program.update_flops = dice.one_of({0.0, 1e6});
  return workload;
}

}  // namespace

TEST_CASE("no step is shorter than its lower bound") {
  Dice dice;
  constexpr int enough = 12000;
  constexpr int tries = 60000;
  int compared = 0;
  double tightness = 0;
  for (int attempt = 0; attempt < tries && compared < enough; ++attempt) {
    const auto machine = thrown_machine(dice);
    const auto workload = thrown_workload(dice);
    const auto step = predict_step(machine, workload);
    if (!step) continue;
    const auto bound = LowerBounds(machine).of(workload);
    ++compared;
    tightness += seconds_of(bound) / seconds_of(step->total());
    if (bound <= step->total()) continue;
    CAPTURE(attempt, layout::name(workload.micro_batches.schedule), workload.degrees.tensor,
            workload.degrees.data, workload.degrees.pipeline, workload.micro_batches.count,
            static_cast<int>(workload.program.sharding), text(*step));
    CHECK(seconds_of(bound) <= seconds_of(step->total()));
  }
  CHECK(compared == enough);
  // A bound that is always zero is none.
  CHECK(tightness / compared > 0.7);
}

TEST_CASE("a bound of a large pipeline is near the step, whoever has asked before") {
  auto machine = plain_machine();
  machine.node.gpus = 8;
  machine.inside.rate = 400e9;
  machine.network.rate = 50e9;
  machine.node.memory_rate = 3e12;
  LowerBounds bounds(machine);
  auto workload = large_workload();
  for (const int tensor : {1, 8, 2}) {
    workload.degrees.tensor = tensor;
    workload.program.recompute =
        tensor == 2 ? config::Recompute{config::Activation::layer} : config::Recompute{};
    const auto step = predict_step(machine, workload);
    REQUIRE(step.ok());
    const auto bound = bounds.of(workload);
    CHECK(bound == LowerBounds(machine).of(workload));
    CHECK(bound <= step->total());
    CHECK(seconds_of(bound) > 0.97 * seconds_of(step->total()));
  }
}
