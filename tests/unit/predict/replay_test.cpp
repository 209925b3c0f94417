// SPDX-License-Identifier: Apache-2.0
#include "predict/replay.hpp"

#include "time_text.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::predict;

namespace {

Segment work(std::int64_t time) {
  return sum_of({Operation{Part::compute, Time(time), {}}});
}

/// A chunk whose forward takes 10 and whose backward takes 20.
ChunkPlan plain_chunk() {
  const std::vector<Piece> forward{{.work = work(10)}};
  const std::vector<Piece> backward{{.work = work(20)}};
  return {forward, forward, backward, backward};
}

/// Stages of one rank each; messages take 3.
struct Pipeline {
  layout::Schedule schedule;
  std::vector<StagePlan> plans;

  explicit Pipeline(int stages, int micro_batches)
      : schedule(*layout::make_schedule(layout::ScheduleKind::one_forward_one_backward, stages,
                                        micro_batches, 1)),
        plans(static_cast<std::size_t>(stages), StagePlan{{plain_chunk()}, {}}) {}

  ReplayInput input() const {
    ReplayInput input{.schedule = schedule, .plans = plans};
    for (int stage = 0; stage < schedule.stages; ++stage) {
      input.ranks.push_back({.stage = stage,
                             .rank = stage,
                             .team = stage,
                             .data_group = stage,
                             .node = 0,
                             .before = stage - 1,
                             .after = stage + 1});
    }
    input.teams = schedule.stages;
    input.data_groups = schedule.stages;
    input.message = [](int, int) { return Time(3); };
    return input;
  }
};

}  // namespace

TEST_CASE("two stages of two micro-batches pass as by hand") {
  // stage 0: F0 0-10, F1 10-20, B0 46-66 (B0 of stage 1 ends at 43), B1 76-96.
  // stage 1: F0 13-23, B0 23-43, F1 43-53, B1 53-73.
  const Pipeline pipeline(2, 2);
  const auto step = replay(pipeline.input());
  CHECK(step.total() == Time(96));
  CHECK(step.stage == 0);
  CHECK(step.parts[Part::compute] == Time(60));
  CHECK(step.parts[Part::pipeline] == Time(6));
  CHECK(step.parts[Part::bubble] == Time(30));
}

TEST_CASE("blocking sends hold their stage") {
  // stage 0: F0 0-10, sends until 13, F1 13-23, sends until 26; B0 is there at 46, B1 at 79.
  // stage 1: F0 13-23, B0 23-43, sends until 46, F1 46-56, B1 56-76, sends until 79.
  const Pipeline pipeline(2, 2);
  auto input = pipeline.input();
  input.overlaps_messages = false;
  const auto step = replay(input);
  CHECK(step.total() == Time(99));
  CHECK(step.parts[Part::compute] == Time(60));
}

TEST_CASE("a sum of gradients goes on beside backward, and what is left over is waited for") {
  Pipeline pipeline(1, 1);
  auto& chunk = pipeline.plans.front().chunks.front();
  // 10 of forward; 5, 5 and 10 of backward, with sums of 7 behind the first and 12 behind the last.
  chunk.last_backward = {{.work = work(5), .reduce = Time(7)},
                         {.work = work(5)},
                         {.work = work(10), .reduce = Time(12)}};
  pipeline.plans.front().end = {
      .reduce = Time(1), .norm = Time(2), .update = Time(4), .gather = {}};
  auto step = replay(pipeline.input());
  // Backward ends at 30, the second sum at 42; 43, 45, 49.
  CHECK(step.total() == Time(49));
  CHECK(step.parts[Part::data] == Time(15));
  CHECK(step.parts[Part::optimizer] == Time(4));
  // A first sum of 17 ends at 32, so the second one ends at 44.
  chunk.last_backward.front().reduce = Time(17);
  step = replay(pipeline.input());
  CHECK(step.total() == Time(51));
}

TEST_CASE("collectives take their part of computation beside them") {
  Pipeline pipeline(1, 1);
  auto& chunk = pipeline.plans.front().chunks.front();
  chunk.last_backward = {{.work = work(10), .reduce = Time(10)}, {.work = work(10)}};
  auto input = pipeline.input();
  input.contention = 200;
  // Ten of the second piece's time beside a sum: two more.
  CHECK(replay(input).total() == Time(32));
}

TEST_CASE("gathered parameters are waited for, one piece ahead") {
  Pipeline pipeline(1, 1);
  auto& chunk = pipeline.plans.front().chunks.front();
  chunk.first_forward = {{.work = work(10), .gather = Time(4)},
                         {.work = work(10), .gather = Time(6)},
                         {.work = work(10), .gather = Time(15)}};
  // 4-14; the second gather runs from 4 to 10: 14-24; the third from 14 to 29: 29-39; backward 59.
  const auto step = replay(pipeline.input());
  CHECK(step.total() == Time(59));
  CHECK(step.parts[Part::data] == Time(9));
}

TEST_CASE("ranks that share a core compute in turn") {
  // Two stages of one micro-batch never compute at once: one core serves both.
  const Pipeline pipeline(2, 1);
  auto input = pipeline.input();
  const auto apart = replay(input);
  input.cores = 1;
  CHECK(replay(input).total() == apart.total());
  // One core does all the work of four micro-batches: 2 x 4 x 30, or more for messages.
  const Pipeline longer(2, 4);
  auto shared = longer.input();
  shared.cores = 1;
  CHECK(replay(shared).total() >= Time(240));
  shared.cores = 2;
  CHECK(replay(shared).total() == replay(longer.input()).total());
}

TEST_CASE("a host that issues too slowly is what a step takes") {
  Pipeline pipeline(1, 3);
  auto& chunk = pipeline.plans.front().chunks.front();
  const auto slow = sum_of({Operation{Part::compute, Time(10), Time(25)}});
  chunk.first_forward = chunk.forward = {{.work = slow}};
  // Forward at 25, 20 of backward issued at once, each next forward 25 later on the host:
  // 25-35, 35-55, 55-65 (issued at 50), 65-85, 85-95, 95-115.
  CHECK(replay(pipeline.input()).total() == Time(115));
}
