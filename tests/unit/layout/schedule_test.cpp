// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/schedule.hpp"

#include "trireme/layout/chunk_buffers.hpp"
#include "trireme/layout/simulate.hpp"

#include "unit/layout/schedules.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <set>

using namespace trireme::layout;
using namespace trireme::tests;
using Catch::Matchers::Contains;

namespace {

/// "F0 F1 B0 …"; chunks after the first as "F0'", "F0''".
std::string line(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) {
    if (!text.empty()) text += ' ';
    text += action.kind == ActionKind::forward ? 'F' : 'B';
    text += std::to_string(action.micro_batch);
    text += std::string(static_cast<std::size_t>(action.virtual_stage), '\'');
  }
  return text;
}

std::string refusal(ScheduleKind kind, int stages, int micro_batches, int virtual_stages) {
  const auto schedule = make_schedule(kind, stages, micro_batches, virtual_stages);
  REQUIRE_FALSE(schedule.ok());
  return schedule.failure().text;
}

}  // namespace

TEST_CASE("gpipe runs all forwards and then all backwards, first in first out") {
  const Schedule schedule = made(gpipe, 2, 3);
  for (const auto& actions : schedule.actions) CHECK(line(actions) == "F0 F1 F2 B0 B1 B2");
}

TEST_CASE("one-forward-one-backward warms up by one forward for each stage below") {
  const Schedule schedule = made(one_f, 3, 4);
  CHECK(line(schedule.actions[0]) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(line(schedule.actions[1]) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(line(schedule.actions[2]) == "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST_CASE("one-forward-one-backward with fewer micro-batches than stages only warms up") {
  const Schedule schedule = made(one_f, 4, 2);
  CHECK(line(schedule.actions[0]) == "F0 F1 B0 B1");
  CHECK(line(schedule.actions[3]) == "F0 B0 F1 B1");
}

TEST_CASE("interleaving sends rounds of one micro-batch a stage through each chunk") {
  // Worked by hand from the published order: warm-up of 2 * (2 - 0 - 1) + 1 * 2 = 4 on stage 0.
  const Schedule schedule = made(interleaved, 2, 4, 2);
  CHECK(line(schedule.actions[0]) == "F0 F1 F0' F1' F2 B0' F3 B1' F2' B0 F3' B1 B2' B3' B2 B3");
  CHECK(line(schedule.actions[1]) == "F0 F1 F0' B0' F1' B1' F2 B0 F3 B1 F2' B2' F3' B3' B2 B3");
}

TEST_CASE("every schedule runs each micro-batch of a chunk once, in ascending order both ways") {
  std::vector<Schedule> schedules;
  for (const int stages : {1, 2, 3, 4, 6}) {
    for (const int micro_batches : {1, 2, 5, 12}) {
      schedules.push_back(made(gpipe, stages, micro_batches));
      schedules.push_back(made(one_f, stages, micro_batches));
      for (const int virtual_stages : {2, 3}) {
        schedules.push_back(made(interleaved, stages, micro_batches * stages, virtual_stages));
      }
    }
  }
  for (const Schedule& schedule : schedules) {
    REQUIRE(schedule.actions.size() == static_cast<std::size_t>(schedule.stages));
    for (const auto& actions : schedule.actions) {
      std::map<std::pair<ActionKind, int>, int>
          next;  // (kind, chunk) to the micro-batch that is due
      for (const Action& action : actions) {
        REQUIRE(action.micro_batch == next[{action.kind, action.virtual_stage}]++);
        if (action.kind == ActionKind::backward) {  // its forward is done
          REQUIRE(next[{ActionKind::forward, action.virtual_stage}] > action.micro_batch);
        }
      }
      REQUIRE(next.size() == static_cast<std::size_t>(2 * schedule.virtual_stages));
      for (const auto& [key, count] : next) REQUIRE(count == schedule.micro_batches);
    }
  }
}

TEST_CASE("breadth first, each chunk takes all micro-batches before the next, there and back") {
  const auto schedule = breadth_first(3, 2);
  CHECK(line(schedule.actions.front()) == "F0 F1 F0' F1' F0'' F1'' B0'' B1'' B0' B1' B0 B1");
  CHECK(check(schedule).ok());
  CHECK(simulate(schedule, {}).ok());
  const auto buffers = chunk_buffers(schedule, 0, Passes::both);
  REQUIRE(buffers.size() == 3);
  for (const auto& chunk : buffers) CHECK(chunk.activations == 2);
  CHECK(buffers.front().inputs == 0);
  CHECK(buffers.back().inputs == 2);
  CHECK(buffers.front().output_gradients == 2);
  CHECK(buffers.back().output_gradients == 0);
}

TEST_CASE("names of schedules are read back and unknown ones meet suggestions") {
  for (const ScheduleKind kind : {gpipe, one_f, interleaved, zb_h1, zb_h2, zb_v}) {
    const auto read = schedule_kind(name(kind));
    REQUIRE(read.ok());
    CHECK(*read == kind);
  }
  CHECK_THAT(schedule_kind("1f2b").failure().text,
             Contains("parallel.schedule = 1f2b") &&
                 Contains("gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-v") &&
                 Contains("did you mean '1f1b'?"));
}

TEST_CASE("what a schedule cannot do is refused with the valid choices") {
  CHECK_THAT(refusal(interleaved, 4, 6, 2), Contains("6 micro-batches are not a multiple of "
                                                     "parallel.pipeline = 4") &&
                                                Contains("try 4 or 8 micro-batches"));
  CHECK_THAT(refusal(interleaved, 4, 3, 2), Contains("try 4 micro-batches"));
  CHECK_THAT(refusal(interleaved, 4, 8, 1), Contains("parallel.virtual_stages = 1"));
  CHECK_THAT(refusal(zb_v, 4, 8, 1), Contains("set parallel.virtual_stages=2"));
  CHECK_THAT(refusal(zb_v, 4, 8, 3), Contains("parallel.virtual_stages = 3"));
  CHECK_THAT(refusal(zb_h1, 4, 8, 2), Contains("parallel.schedule = zb-h1"));
  CHECK_THAT(refusal(one_f, 4, 8, 2), Contains("parallel.virtual_stages = 2") &&
                                          Contains("set parallel.schedule=interleaved"));
  CHECK_THAT(refusal(gpipe, 0, 8, 1), Contains("parallel.pipeline = 0"));
  CHECK_THAT(refusal(gpipe, 2, 0, 1), Contains("0 micro-batches is below 1"));
  CHECK_THAT(refusal(one_f, 2'000'000'000, 2'000'000'000, 1), Contains("actions a step"));
}
