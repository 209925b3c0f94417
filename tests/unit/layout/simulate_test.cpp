// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/simulate.hpp"

#include "unit/layout/schedules.hpp"

#include <catch2/catch.hpp>

#include <utility>

using namespace trireme::layout;
using namespace trireme::tests;
using Catch::Matchers::Contains;

namespace {

std::string refusal(const Schedule& schedule) {
  const auto simulation = simulate(schedule, {});
  REQUIRE_FALSE(simulation.ok());
  CHECK(simulation.failure().code == trireme::base::ExitCode::internal);
  return simulation.failure().text;
}

Action forward(int micro_batch) {
  return {ActionKind::forward, micro_batch, 0};
}
Action backward(int micro_batch) {
  return {ActionKind::backward, micro_batch, 0};
}
Action input(int micro_batch) {
  return {ActionKind::backward_input, micro_batch, 0};
}
Action weight(int micro_batch) {
  return {ActionKind::backward_weight, micro_batch, 0};
}

}  // namespace

TEST_CASE("gpipe and one-forward-one-backward idle for (p - 1) / (m + p - 1) of the makespan") {
  for (const double ratio : {1.0, 2.0, 2.7}) {  // backward to forward
    const Costs costs{1.0, ratio / 2, ratio / 2, 0};
    for (const int p : {1, 2, 3, 4, 8}) {
      for (const int m : {1, 2, 3, 8, 16, 33}) {
        for (const ScheduleKind kind : {gpipe, one_f}) {
          const Simulation simulation = simulated(made(kind, p, m), costs);
          INFO(name(kind) << " p=" << p << " m=" << m);
          CHECK(simulation.makespan == Approx((m + p - 1) * (1 + ratio)));
          CHECK(simulation.bubble_fraction == Approx((p - 1.0) / (m + p - 1)).margin(1e-12));
        }
      }
    }
  }
}

TEST_CASE("interleaving over v chunks idles for (p - 1) / v / (m + (p - 1) / v) of the makespan") {
  for (const int v : {2, 3, 4}) {
    const Costs costs{1.0 / v, 1.0 / v, 1.0 / v, 0};
    for (const int p : {1, 2, 3, 4, 8}) {
      for (const int rounds : {1, 2, 3, 5}) {
        const int m = p * rounds;
        INFO("p=" << p << " m=" << m << " v=" << v);
        const Simulation simulation = simulated(made(interleaved, p, m, v), costs);
        const double idle = (p - 1.0) / v;
        CHECK(simulation.makespan == Approx(3 * (m + idle)));
        CHECK(simulation.bubble_fraction == Approx(idle / (m + idle)).margin(1e-12));
      }
    }
  }
}

TEST_CASE("published bubbles of eight stages and sixteen micro-batches are shares of makespan") {
  CHECK(simulated(made(one_f, 8, 16)).bubble_fraction == Approx(0.304).margin(0.0005));
  CHECK(simulated(made(interleaved, 8, 16, 2)).bubble_fraction == Approx(0.179).margin(0.0005));
}

TEST_CASE("gpipe holds every micro-batch, one-forward-one-backward at most stage-depth of them") {
  for (const int p : {1, 2, 3, 5}) {
    for (const int m : {1, 2, 4, 9}) {
      const Simulation all = simulated(made(gpipe, p, m));
      const Simulation few = simulated(made(one_f, p, m));
      for (int stage = 0; stage < p; ++stage) {
        const auto s = static_cast<std::size_t>(stage);
        CHECK(all.peak_live_total[s] == m);
        CHECK(few.peak_live_total[s] == std::min(m, p - stage));
        CHECK(few.peak_live[s] == std::vector<int>{std::min(m, p - stage)});
      }
    }
  }
}

TEST_CASE("interleaving holds 2 (p - s - 1) + (v - 1) p + 1 chunks' activations on stage s") {
  for (const int v : {2, 3}) {
    for (const int p : {1, 2, 3, 4}) {
      for (const int rounds : {1, 2, 4}) {
        const int m = p * rounds;
        const Simulation simulation = simulated(made(interleaved, p, m, v));
        for (int stage = 0; stage < p; ++stage) {
          INFO("p=" << p << " m=" << m << " v=" << v << " stage=" << stage);
          const auto s = static_cast<std::size_t>(stage);
          const int in_flight = std::min(2 * (p - stage - 1) + (v - 1) * p + 1, m * v);
          CHECK(simulation.peak_live_total[s] == in_flight);
          int sum = 0;
          for (const int peak : simulation.peak_live[s]) {
            CHECK(peak >= 1);
            CHECK(peak <= in_flight);
            sum += peak;
          }
          CHECK(sum >= in_flight);  // chunks peak at different times
        }
      }
    }
  }
}

TEST_CASE("every generated schedule finishes whatever messages and actions cost") {
  for (const int p : {1, 2, 3, 4, 6}) {
    for (const int m : {1, 2, 3, 7}) {
      for (const Costs& costs : {Costs{}, Costs{0, 0, 0, 0}, Costs{1, 3, 0.1, 5}}) {
        simulated(made(gpipe, p, m), costs);
        simulated(made(one_f, p, m), costs);
        simulated(made(interleaved, p, m * p, 2), costs);
        simulated(made(interleaved, p, m * p, 5), costs);
      }
    }
  }
}

TEST_CASE("no action begins before what it needs, nor while its stage is busy") {
  const Schedule schedule = made(interleaved, 3, 6, 2);
  const Placement placement = schedule.placement();
  const Costs costs{1.0, 1.5, 0.5, 0.25};
  const Simulation simulation = simulated(schedule, costs);
  const auto end_of = [&](ChunkPlace place, const Action& action) {
    for (const auto& timed : simulation.timeline[static_cast<std::size_t>(place.stage)]) {
      if (timed.action == Action{action.kind, action.micro_batch, place.virtual_stage}) {
        return timed.end;
      }
    }
    FAIL("missing action");
    return 0.0;
  };
  for (int stage = 0; stage < schedule.stages; ++stage) {
    double stage_end = 0;
    for (const auto& timed : simulation.timeline[static_cast<std::size_t>(stage)]) {
      const ChunkPlace here{stage, timed.action.virtual_stage};
      const bool is_forward = timed.action.kind == ActionKind::forward;
      double earliest = stage_end;
      const ChunkPlace giver = is_forward ? placement.previous(here) : placement.next(here);
      if (giver.stage >= 0) {
        earliest = std::max(earliest, end_of(giver, timed.action) + costs.message);
      }
      if (!is_forward) {
        earliest = std::max(earliest, end_of(here, {ActionKind::forward, timed.action.micro_batch,
                                                    timed.action.virtual_stage}));
      }
      CHECK(timed.begin == Approx(earliest));  // and not later either
      CHECK(timed.end - timed.begin == Approx(is_forward ? 1.0 : 2.0));
      stage_end = timed.end;
    }
  }
}

TEST_CASE("a message delays the chunk on another stage but not one on the same stage") {
  CHECK(simulated(made(gpipe, 2, 1), {1, 1, 1, 10}).makespan == Approx(2 + 4 + 20));
  CHECK(simulated(made(interleaved, 1, 1, 2), {1, 1, 1, 10}).makespan == Approx(6));
}

TEST_CASE("split backwards let weight gradients fill the bubble") {
  // Worked by hand; one unit each: the last stage delays its weight gradients.
  const Schedule schedule{one_f,
                          2,
                          2,
                          1,
                          {{forward(0), forward(1), input(0), weight(0), input(1), weight(1)},
                           {forward(0), input(0), forward(1), input(1), weight(0), weight(1)}}};
  const Simulation simulation = simulated(schedule);
  CHECK(simulation.makespan == Approx(7));
  CHECK(simulation.bubble_fraction == Approx(2.0 / 14));
  CHECK(simulation.peak_live_total == std::vector<int>{2, 2});
  CHECK(simulated(made(one_f, 2, 2)).makespan == Approx(9));
}

TEST_CASE("a planted deadlock names every stage, the action it waits in and what it waits for") {
  Schedule schedule = made(one_f, 3, 2);
  // Stage 1 wants micro-batch 1 before stage 0, which wants 0 back first, has sent it.
  schedule.actions[0] = {forward(0), backward(0), forward(1), backward(1)};
  schedule.actions[1] = {forward(0), forward(1), backward(0), backward(1)};
  const std::string text = refusal(schedule);
  CHECK_THAT(text, Contains("cannot finish"));
  CHECK_THAT(text, Contains("stage 0 waits in backward of micro-batch 0 for backward of "
                            "micro-batch 0 on stage 1"));
  CHECK_THAT(text, Contains("stage 1 waits in forward of micro-batch 1 for forward of "
                            "micro-batch 1 on stage 0"));
  CHECK_THAT(text, Contains("stage 2 waits in forward of micro-batch 1 for forward of "
                            "micro-batch 1 on stage 1"));
}

TEST_CASE("a deadlock leaves out the stages that finish") {
  Schedule schedule = made(gpipe, 2, 2);
  schedule.actions[1] = {backward(0), forward(0), forward(1), backward(1)};
  const std::string text = refusal(schedule);
  CHECK_THAT(text, Contains("stage 1 waits in backward of micro-batch 0 for forward of "
                            "micro-batch 0 on stage 1"));
  CHECK_THAT(text, Contains("stage 0 waits in backward of micro-batch 0"));
  schedule = made(gpipe, 1, 2);
  schedule.actions[0] = {backward(0), forward(0), forward(1), backward(1)};
  CHECK_THAT(refusal(schedule), Contains("stage 0 waits in backward of micro-batch 0"));
}

TEST_CASE("lists that are not a whole step are refused by stage and action") {
  const Schedule good = made(one_f, 2, 3);
  Schedule bad = good;
  bad.actions[1].pop_back();
  CHECK_THAT(refusal(bad), Contains("stage 1 does not complete micro-batch 2"));
  bad = good;
  bad.actions[0].push_back(forward(1));
  CHECK_THAT(refusal(bad), Contains("stage 0 repeats forward of micro-batch 1"));
  bad = good;
  bad.actions[0].push_back(input(1));
  CHECK_THAT(refusal(bad), Contains("stage 0 repeats backward_input of micro-batch 1"));
  bad = good;
  bad.actions[0].push_back(forward(3));
  CHECK_THAT(refusal(bad), Contains("forward of micro-batch 3") && Contains("does not exist"));
  bad = good;
  bad.actions.pop_back();
  CHECK_THAT(refusal(bad), Contains("1 lists of actions for 2 stages"));
}

TEST_CASE("weight gradients out of order are refused, because schedules must agree bitwise") {
  Schedule schedule = made(gpipe, 2, 2);
  for (auto& actions : schedule.actions) std::swap(actions[2], actions[3]);  // last in first out
  CHECK_THAT(refusal(schedule), Contains("stage 0 has backward of micro-batch 1 out of order"));
}
