// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/chunk_buffers.hpp"
#include "trireme/layout/simulate.hpp"

#include "unit/layout/schedules.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace trireme::layout;
using namespace trireme::tests;

namespace {

/// Attention's core and norms have no gradient of weights: that of inputs takes longer.
constexpr Costs unequal{1.0, 1.3, 0.7, 0.0};

/// Chunks are half as long as stages.
Costs halved(const Costs& costs) {
  return {costs.forward / 2, costs.backward_input / 2, costs.backward_weight / 2, 0.0};
}

int most_of(const std::vector<int>& counts) {
  return *std::max_element(counts.begin(), counts.end());
}

}  // namespace

TEST_CASE("eight stages and sixteen micro-batches of equal costs idle as counted by hand") {
  // 48 units of work a stage. The last stage of a straight pipeline begins after seven forwards: 55
  // units are the least. That of a V begins after seven halves: 51.5.
  CHECK(simulated(made(zb_h1, 8, 16)).makespan == Approx(55));
  CHECK(simulated(made(zb_h1, 8, 16)).bubble_fraction == Approx(0.127).margin(0.0005));
  CHECK(simulated(made(zb_h2, 8, 16)).bubble_fraction == Approx(0.127).margin(0.0005));
  const auto v = simulated(made(zb_v, 8, 16, 2), halved({}));
  CHECK(v.makespan == Approx(51.5));
  CHECK(v.bubble_fraction == Approx(0.068).margin(0.0005));
}

TEST_CASE("straight zero-bubble schedules idle for (p - 1) forwards where costs are equal") {
  for (const int p : {1, 2, 3, 4, 8, 16}) {
    for (const int m : {p, p + 1, 2 * p, 3 * p + 1}) {
      CAPTURE(p, m);
      CHECK(simulated(made(zb_h1, p, m)).makespan == Approx(3 * m + p - 1));
      CHECK(simulated(made(zb_h2, p, m)).makespan == Approx(3 * m + p - 1));
    }
  }
}

TEST_CASE("more activations hide an input's gradient that takes longer than the weights'") {
  for (const int p : {2, 3, 4, 8}) {
    const int m = 2 * p;
    CAPTURE(p);
    CHECK(simulated(made(zb_h1, p, m), unequal).makespan == Approx(3 * m + (p - 1) * 1.6));
    CHECK(simulated(made(zb_h2, p, m), unequal).makespan == Approx(3 * m + (p - 1)));
    CHECK(simulated(made(one_f, p, m), unequal).makespan == Approx(3 * (m + p - 1)));
  }
}

TEST_CASE("the shape of a V reaches the least makespan with two micro-batches a stage") {
  for (const int p : {1, 2, 3, 4, 5, 6, 8, 10, 12, 16}) {
    CAPTURE(p);
    CHECK(simulated(made(zb_v, p, 2 * p, 2)).makespan == Approx(6 * 2 * p + p - 1));
  }
}

TEST_CASE("the shape of a V idles less than straight pipelines, whether gradients cost the same") {
  for (const int p : {2, 3, 4, 6, 8, 12, 16}) {
    for (const int m : {2 * p, 2 * p + 1, 3 * p, 4 * p, 6 * p, 8 * p, 16 * p}) {
      CAPTURE(p, m);
      const auto v = made(zb_v, p, m, 2);
      const auto straight = made(zb_h1, p, m);
      const auto whole = made(one_f, p, m);
      const auto equal_v = simulated(v, halved({})).bubble_fraction;
      const auto unequal_v = simulated(v, halved(unequal)).bubble_fraction;
      CHECK(equal_v < simulated(whole).bubble_fraction);
      CHECK(unequal_v < simulated(whole, unequal).bubble_fraction);
      CHECK(equal_v + unequal_v <=
            simulated(straight).bubble_fraction + simulated(straight, unequal).bubble_fraction);
    }
  }
  // Many micro-batches of unequal gradients, where an order for equal ones idles 10.2 %.
  CHECK(simulated(made(zb_v, 8, 64, 2), halved(unequal)).bubble_fraction < 0.05);
}

TEST_CASE("zero-bubble schedules hold p, 2 p - 1 and p micro-batches' activations on a stage") {
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int m : {1, 2, p, 2 * p, 4 * p}) {
      CAPTURE(p, m);
      CHECK(most_of(simulated(made(zb_h1, p, m)).peak_live_total) == std::min(m, p));
      CHECK(most_of(simulated(made(zb_h2, p, m)).peak_live_total) == std::min(m, 2 * p - 1));
      // Chunks are half a stage each.
      CHECK(most_of(simulated(made(zb_v, p, m, 2)).peak_live_total) <= 2 * std::min(m, p));
    }
  }
}

TEST_CASE("zero-bubble schedules finish whatever messages and actions cost") {
  for (const int p : {1, 2, 3, 5, 6}) {
    for (const int m : {1, 2, 3, 7, 12}) {
      for (const Costs& costs : {Costs{}, Costs{0, 0, 0, 0}, Costs{1, 3, 0.1, 5}}) {
        CAPTURE(p, m);
        simulated(made(zb_h1, p, m), costs);
        simulated(made(zb_h2, p, m), costs);
        simulated(made(zb_v, p, m, 2), costs);
      }
    }
  }
}

TEST_CASE("what waits for the weights' gradients has buffers of its own") {
  // Stage s leaves the weights of s + 1 micro-batches for later.
  for (const int stage : {0, 1, 3}) {
    const auto buffers = chunk_buffers(made(zb_h1, 4, 8), stage, Passes::both);
    CHECK(buffers[0].activations == 4 - stage);
    CHECK(buffers[0].operands == 4);
    CHECK(buffers[0].left == stage + 1);
    CHECK(buffers[0].inputs == (stage == 0 ? 0 : 4 - stage + 1));
    CHECK(buffers[0].output_gradients == (stage == 3 ? 0 : stage + 2));
  }
  CHECK(chunk_buffers(made(one_f, 4, 8), 1, Passes::both)[0].left == 0);
}

TEST_CASE("a stage at the turn of a V hands its own chunk what no message brings early") {
  const auto schedule = made(zb_v, 4, 8, 2);
  const auto turn = chunk_buffers(schedule, 3, Passes::both);
  const auto before = chunk_buffers(schedule, 2, Passes::both);
  CHECK(schedule.placement().next({3, 0}) == ChunkPlace{3, 1});
  for (const auto& chunk : turn) CHECK(chunk.inputs >= 1);
  // As many as lie between the first chunk's forward and the second's gradient of its input.
  CHECK(turn[1].inputs <= turn[0].activations);
  CHECK(before[1].inputs >= 2);
  CHECK(chunk_buffers(schedule, 0, Passes::both)[1].output_gradients == 0);
}

TEST_CASE("costs differ by position: a stage with more work keeps the others waiting") {
  const auto schedule = made(one_f, 2, 4);
  const Costs layers{1, 1, 1, 0};
  const Costs with_head{4, 1, 1, 0};  // the head's gradients come with its forward
  const std::vector<Costs> costs{layers, with_head};
  const auto simulation = simulate(schedule, costs, 0);
  REQUIRE(simulation.ok());
  // The last stage begins after one forward and ends one backward before the first.
  CHECK(simulation->makespan == Approx(1 + 4 * 6 + 2));
  CHECK(simulation->bubble_fraction == Approx(1 - (12.0 + 24.0) / (2 * 27)));
}

TEST_CASE("gradients of inputs out of order are refused, because norms' weights come with them") {
  auto schedule = made(zb_h1, 2, 2);
  REQUIRE(schedule.actions[1].size() == 6);
  auto& actions = schedule.actions[1];
  const auto is_input = [](const Action& action) {
    return action.kind == ActionKind::backward_input;
  };
  const auto first = std::find_if(actions.begin(), actions.end(), is_input);
  const auto second = std::find_if(first + 1, actions.end(), is_input);
  std::swap(*first, *second);
  const auto simulation = simulate(schedule, {});
  REQUIRE_FALSE(simulation.ok());
  CHECK(simulation.failure().text.find(
            "stage 1 has backward_input of micro-batch 1 out of order") != std::string::npos);
}

TEST_CASE("forwards out of order are refused, because buffers go round in theirs") {
  auto schedule = made(zb_h1, 2, 2);
  auto& actions = schedule.actions[0];
  REQUIRE(actions[0].kind == ActionKind::forward);
  REQUIRE(actions[1].kind == ActionKind::forward);
  std::swap(actions[0], actions[1]);
  const auto simulation = simulate(schedule, {});
  REQUIRE_FALSE(simulation.ok());
  CHECK(simulation.failure().text.find("stage 0 has forward of micro-batch 1 out of order") !=
        std::string::npos);
}
