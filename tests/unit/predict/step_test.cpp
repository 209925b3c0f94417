// SPDX-License-Identifier: Apache-2.0
#include "trireme/predict/step.hpp"

#include "machines.hpp"
#include "time_text.hpp"

#include <catch2/catch.hpp>

#include <functional>

using namespace trireme;
using namespace trireme::predict;
using tests::large_workload;
using tests::plain_machine;
using tests::small_workload;

namespace {

Machine slow_start_machine() {
  auto machine = plain_machine();
  machine.node.gpus = 4;
  machine.inside.latency = 2e-6;
  machine.inside.hop = 1e-6;
  machine.network.latency = 4e-6;
  machine.network.hop = 3e-6;
  machine.tiles = {
      .processors = 10, .rows = 8, .columns = 8, .half_rate_terms = 4, .for_collectives = 1};
  return machine;
}

StepPrediction predicted(const Machine& machine, const Workload& workload,
                         Folding folding = Folding::equal_ranks) {
  const auto step = predict_step(machine, workload, folding);
  INFO((step ? "" : step.failure().text));
  REQUIRE(step.ok());
  return *step;
}

/// [data-parallel ranks less 1].
constexpr layout::ScheduleKind split_kinds[] = {layout::ScheduleKind::zero_bubble_h1,
                                                layout::ScheduleKind::zero_bubble_h2,
                                                layout::ScheduleKind::zero_bubble_v};

/// Layouts of up to 64 ranks, of all kinds of sharding, overlap and schedules.
std::vector<Workload> many_workloads() {
  std::vector<Workload> list;
  for (const int tensor : {1, 2, 3}) {
    for (const int context : {1, 2}) {
      for (const int data : {1, 2, 3}) {
        for (const int pipeline : {1, 2, 4}) {
          if (tensor * context * data * pipeline > 64) continue;
          for (const auto sharding :
               {Sharding::none, Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
            auto workload = small_workload();
            workload.shape.layers = 8;
            workload.program.launch_gap = 1e-6;
            workload.degrees = {tensor, context, data, pipeline};
            workload.micro_batches.count = 4;
            if (pipeline > 1 && tensor != 2) {
              workload.micro_batches.schedule = layout::ScheduleKind::interleaved;
              workload.micro_batches.virtual_stages = 2;
            } else if (pipeline > 1) {
              workload.micro_batches.schedule = split_kinds[data - 1];
              workload.micro_batches.virtual_stages = data == 3 ? 2 : 1;
            }
            workload.program.sharding = sharding;
            workload.program.sequence_parallel = tensor == 2;
            workload.program.overlaps_data = data != 3;
            workload.program.overlaps_gathers = tensor != 3;
            workload.program.overlaps_messages = context == 1;
            workload.program.gathers_into_ring = context == 1;
            workload.program.bucket_elements = 3000;
            list.push_back(workload);
          }
        }
      }
    }
  }
  return list;
}

}  // namespace

TEST_CASE("equal ranks folded end exactly when all ranks do") {
  auto machine = slow_start_machine();
  // Nodes that end within stages and within teams, too.
  for (const int gpus : {4, 3, 5}) {
    machine.node.gpus = gpus;
    for (const auto& workload : many_workloads()) {
      const auto& degrees = workload.degrees;
      CAPTURE(gpus, degrees.tensor, degrees.context, degrees.data, degrees.pipeline,
              static_cast<int>(workload.program.sharding));
      const auto folded = predicted(machine, workload);
      const auto each = predicted(machine, workload, Folding::none);
      CHECK(folded.total() == each.total());
      CHECK(folded.parts == each.parts);
      CHECK(folded.of_first_rank == each.of_first_rank);
    }
  }
}

TEST_CASE("a faster part never makes a step slower") {
  const std::vector<std::function<void(Machine&)>> faster{
      [](Machine& machine) { machine.share.product *= 1.7; },
      [](Machine& machine) { machine.share.attention *= 3; },
      [](Machine& machine) { machine.node.memory_rate *= 1.3; },
      [](Machine& machine) { machine.inside.rate *= 2; },
      [](Machine& machine) { machine.network.rate *= 2; },
      [](Machine& machine) { machine.inside.hop /= 3; },
      [](Machine& machine) { machine.network.latency = 0; },
  };
  for (auto workload : many_workloads()) {
    const auto before = predicted(slow_start_machine(), workload).total();
    for (std::size_t index = 0; index < faster.size(); ++index) {
      CAPTURE(index, workload.degrees.tensor, workload.degrees.data, workload.degrees.pipeline);
      auto machine = slow_start_machine();
      faster[index](machine);
      CHECK(predicted(machine, workload).total() <= before);
    }
    workload.program.launch_gap /= 2;
    CHECK(predicted(slow_start_machine(), workload).total() <= before);
  }
}

TEST_CASE("the first layer costs as much as by hand") {
  auto machine = plain_machine();
  machine.node.memory_rate = 1e18;
  auto workload = small_workload();
  workload.program.update_bytes = 0;
  // 16 tokens x 6 FLOPs x (4 layers of 12 x 8 x 8, and a head of 64 x 8), and attention's seven
  // products of 16 x 16 x 8 in a layer, half of 2 FLOPs each.
  const double products = 16.0 * 6 * (4 * 12 * 64 + 64 * 8);
  const double attention = 4 * 7 * 16 * 16 * 8;
  CHECK(seconds_of(predicted(machine, workload).total()) ==
        Approx((products + attention) / 1e12).epsilon(1e-3));
}

TEST_CASE("more cores than ranks change nothing for a rank, fewer make them wait") {
  auto machine = plain_machine();
  machine.node.gpus = 0;
  machine.node.cores = 8;
  auto workload = small_workload();
  workload.degrees.data = 8;
  const auto own = predicted(machine, workload).parts[Part::compute];
  machine.node.cores = 2;
  machine.node.peak_fp32 /= 4;
  machine.node.peak_bf16 /= 4;
  machine.node.memory_rate /= 4;
  // Each core as fast as before, and a quarter of them: some rank runs last.
  CHECK(predicted(machine, workload).total() > 3 * own);
}

TEST_CASE("recomputation costs a forward, and no more") {
  const auto machine = plain_machine();
  auto workload = small_workload();
  const auto plain = predicted(machine, workload).total();
  workload.program.recompute = config::Recompute{config::Activation::layer};
  const auto again = predicted(machine, workload).total();
  CHECK(again > plain);
  CHECK(seconds_of(again) < 4.0 / 3 * seconds_of(plain));
}

TEST_CASE("a step of more than a hundred days is refused, however long it is") {
  const auto refused = [](const Machine& machine, const Workload& workload) {
    const auto step = predict_step(machine, workload);
    REQUIRE_FALSE(step.ok());
    CHECK(step.failure().code == base::ExitCode::usage);
    CHECK_THAT(step.failure().text, Catch::Contains("days (longer than 100"));
  };
  auto machine = plain_machine();
  // More than 2^63 picoseconds in one operation, and in the sum of many.
  machine.node.memory_rate = 1e-300;
  refused(machine, small_workload());
  machine = plain_machine();
  auto workload = small_workload();
  workload.program.launch_gap = 1e4;
  workload.micro_batches.count = 1000;
  refused(machine, workload);
  workload = small_workload();
  workload.degrees.data = 4;
  machine.network.latency = 1e300;
  refused(machine, workload);
}

TEST_CASE("a step of ninety days has its time") {
  auto machine = plain_machine();
  constexpr double day = 24 * 3600;
  machine.node.memory_rate = 1e18;
  auto workload = small_workload();
  workload.program.update_bytes = 0;
  const double fast = seconds_of(predicted(machine, workload).total());
  machine.node.peak_bf16 *= fast / (90 * day);
  CHECK(seconds_of(predicted(machine, workload).total()) == Approx(90 * day).epsilon(1e-2));
}

TEST_CASE("ranks that share cores take turns in updating, too") {
  auto machine = plain_machine();
  machine.node.gpus = 0;
  machine.node.cores = 2;
  auto workload = small_workload();
  workload.degrees.data = 8;
  const auto without = [&] {
    auto none = workload;
    none.program.update_bytes = 0;
    return predicted(machine, none).total();
  }();
  const auto with = predicted(machine, workload);
  // Eight updates on two cores: four, one after the other.
  CHECK(with.total() - without == 4 * with.parts[Part::optimizer]);
}

TEST_CASE("what a schedule or an assignment cannot be is refused by its key") {
  auto workload = small_workload();
  workload.degrees.pipeline = 2;
  workload.micro_batches.count = 3;
  workload.micro_batches.schedule = layout::ScheduleKind::interleaved;
  workload.micro_batches.virtual_stages = 2;
  const auto odd = predict_step(plain_machine(), workload);
  REQUIRE_FALSE(odd.ok());
  CHECK(odd.failure().code == base::ExitCode::usage);
  workload = small_workload();
  workload.degrees.pipeline = 8;
  const auto few = predict_step(plain_machine(), workload);
  REQUIRE_FALSE(few.ok());
  CHECK_THAT(few.failure().text, Catch::Contains("layers"));
}

TEST_CASE("splitting backward shortens a step whose stages wait for each other") {
  auto workload = small_workload();
  workload.shape.layers = 8;
  workload.degrees.pipeline = 4;
  workload.micro_batches.count = 8;
  const auto seconds = [&](layout::ScheduleKind kind) {
    workload.micro_batches.schedule = kind;
    workload.micro_batches.virtual_stages = layout::has_virtual_stages(kind) ? 2 : 1;
    return predicted(plain_machine(), workload).total();
  };
  const auto whole = seconds(layout::ScheduleKind::one_forward_one_backward);
  CHECK(seconds(layout::ScheduleKind::zero_bubble_h1) < whole);
  CHECK(seconds(layout::ScheduleKind::zero_bubble_h2) < whole);
  CHECK(seconds(layout::ScheduleKind::zero_bubble_v) < whole);
}

TEST_CASE("parts of a step add up to it, for people and for programs") {
  const auto step = predicted(slow_start_machine(), many_workloads().back());
  const auto json = to_json(step);
  double sum = 0;
  for (const auto& [name, seconds] : json["parts"].items()) sum += seconds.get<double>();
  CHECK(sum == Approx(json["seconds"].get<double>()));
  CHECK_THAT(text(step), Catch::StartsWith("step ") && Catch::Contains("bubble"));
}
