// SPDX-License-Identifier: Apache-2.0
// Every schedule passes in the replay as in the simulator of layouts.
#include "trireme/layout/simulate.hpp"

#include "predict/replay.hpp"
#include "time_text.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <numeric>

using namespace trireme;
using namespace trireme::predict;
using layout::ScheduleKind;

namespace {

/// Times of a chunk's actions.
struct Times {
  std::int64_t forward = 10;
  std::int64_t input = 10;
  std::int64_t weight = 10;
};

std::vector<Piece> lasting(std::int64_t time) {
  return {{.work = sum_of({Operation{Part::compute, Time(time), {}}})}};
}

ChunkPlan chunk_of(const Times& times, bool splits) {
  const auto forward = lasting(times.forward);
  const auto backward = lasting(splits ? times.input : times.input + times.weight);
  const auto weight = lasting(times.weight);
  return {forward, forward, backward, backward, weight, weight};
}

/// A stage of one rank each, with times of each position of the model.
class TimedPipeline {
 public:
  TimedPipeline(ScheduleKind kind, int stages, int micro_batches, std::vector<Times> times)
      : times_(std::move(times)),
        schedule_(*layout::make_schedule(kind, stages, micro_batches,
                                         static_cast<int>(times_.size()) / stages)) {
    const auto placement = schedule_.placement();
    for (int stage = 0; stage < stages; ++stage) {
      auto& plan = plans_.emplace_back();
      for (int chunk = 0; chunk < schedule_.virtual_stages; ++chunk) {
        const int position = placement.position_of({stage, chunk});
        plan.chunks.push_back(
            chunk_of(times_[static_cast<std::size_t>(position)], layout::splits_backward(kind)));
      }
    }
  }

  Time replayed(std::int64_t message) const {
    const int stages = schedule_.stages;
    ReplayInput input{.schedule = schedule_, .plans = plans_};
    for (int stage = 0; stage < stages; ++stage) {
      input.ranks.push_back({.stage = stage,
                             .rank = stage,
                             .team = stage,
                             .data_group = stage,
                             .node = 0,
                             .before = (stage + stages - 1) % stages,
                             .after = (stage + 1) % stages});
    }
    input.teams = stages;
    input.data_groups = stages;
    input.message = [&](int, int) { return Time(message); };
    return replay(input).total();
  }

  double simulated(std::int64_t message) const {
    std::vector<layout::Costs> costs;
    for (const auto& each : times_) {
      costs.push_back({static_cast<double>(each.forward), static_cast<double>(each.input),
                       static_cast<double>(each.weight), 0});
    }
    return layout::simulate(schedule_, costs, static_cast<double>(message))->makespan;
  }

  /// Idle part of the replayed step, over all stages.
  double bubble() const {
    const auto busy = std::accumulate(times_.begin(), times_.end(), std::int64_t{0},
                                      [](std::int64_t sum, const Times& each) {
                                        return sum + each.forward + each.input + each.weight;
                                      });
    return 1 - static_cast<double>(busy * schedule_.micro_batches) /
                   (schedule_.stages * static_cast<double>(replayed(0).count()));
  }

 private:
  std::vector<Times> times_;
  layout::Schedule schedule_;
  std::vector<StagePlan> plans_;
};

int chunks(ScheduleKind kind) {
  return layout::has_virtual_stages(kind) ? 2 : 1;
}

std::vector<Times> equal(int positions, const Times& times) {
  return std::vector<Times>(static_cast<std::size_t>(positions), times);
}

/// An embedding and a head, and layers that differ.
std::vector<Times> unequal(int positions) {
  auto times = equal(positions, {10, 13, 7});
  for (std::size_t index = 0; index < times.size(); ++index) {
    times[index].input += static_cast<std::int64_t>(index % 3);
  }
  times.front().input += 4;
  times.back().forward += 9;
  return times;
}

constexpr ScheduleKind all_kinds[] = {
    ScheduleKind::gpipe,          ScheduleKind::one_forward_one_backward,
    ScheduleKind::interleaved,    ScheduleKind::zero_bubble_h1,
    ScheduleKind::zero_bubble_h2, ScheduleKind::zero_bubble_v};

}  // namespace

TEST_CASE("eight stages and sixteen micro-batches idle as docs/parallelism.md says") {
  const auto bubble = [](ScheduleKind kind) {
    return TimedPipeline(kind, 8, 16, equal(8 * chunks(kind), {})).bubble();
  };
  CHECK(bubble(ScheduleKind::one_forward_one_backward) == Approx(0.304).margin(0.0005));
  CHECK(bubble(ScheduleKind::zero_bubble_h1) == Approx(0.127).margin(0.0005));
  CHECK(bubble(ScheduleKind::zero_bubble_h2) == Approx(0.127).margin(0.0005));
  CHECK(bubble(ScheduleKind::zero_bubble_v) == Approx(0.068).margin(0.0005));
}

TEST_CASE("every schedule ends in the replay when the simulator says") {
  for (const auto kind : all_kinds) {
    for (const int stages : {2, 3, 4, 8}) {
      for (const int micro_batches : {stages, 2 * stages, 3 * stages}) {
        const int positions = stages * chunks(kind);
        for (const auto& times : {equal(positions, {}), equal(positions, {10, 13, 7}),
                                  equal(positions, {7, 10, 13}), unequal(positions)}) {
          const TimedPipeline pipeline(kind, stages, micro_batches, times);
          // A message is shorter than an action: none waits for the one before it.
          for (const std::int64_t message : {0, 3}) {
            CAPTURE(layout::name(kind), stages, micro_batches, message);
            CHECK(static_cast<double>(pipeline.replayed(message).count()) ==
                  pipeline.simulated(message));
          }
        }
      }
    }
  }
}
