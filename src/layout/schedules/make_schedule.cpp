// SPDX-License-Identifier: Apache-2.0
// Generators of schedules.
#include "trireme/layout/parallel_rules.hpp"
#include "trireme/layout/schedule.hpp"

#include "zero_bubble.hpp"

#include <algorithm>
#include <cstdint>

namespace trireme::layout {
namespace {

/// All forwards, then all backwards, first in first out: GPipe's paper (arXiv 1811.06965, figure 2)
/// takes the backwards last in first out; the bubble is the same, but then weight gradients would
/// be summed in another order than in the other schedules.
std::vector<Action> gpipe_actions(const Schedule& schedule) {
  std::vector<Action> actions;
  for (int micro_batch = 0; micro_batch < schedule.micro_batches; ++micro_batch) {
    actions.push_back({ActionKind::forward, micro_batch, 0});
  }
  for (int micro_batch = 0; micro_batch < schedule.micro_batches; ++micro_batch) {
    actions.push_back({ActionKind::backward, micro_batch, 0});
  }
  return actions;
}

/// Forwards that a stage runs before its first backward, minus one: in the steady part each
/// backward is preceded by a forward. PipeDream-Flush and Megatron-LM (arXiv 2104.04473, section
/// 2.2): the number of stages below; interleaved, two for each stage below (there and back) and a
/// round of all stages for each further chunk.
std::int64_t warm_up_forwards(const Schedule& schedule, int stage) {
  const std::int64_t below = schedule.stages - stage - 1;
  const std::int64_t total = std::int64_t{schedule.micro_batches} * schedule.virtual_stages;
  const std::int64_t wanted =
      schedule.virtual_stages == 1
          ? below
          : below * 2 + std::int64_t{schedule.virtual_stages - 1} * schedule.stages;
  return std::min(wanted, total);
}

enum class Direction { forward, backward };

/// Action number `index` in the order in which a stage runs its (micro-batch, chunk) pairs: rounds
/// of `stages` micro-batches, which pass the stage's chunks one after the other.
Action action_in_order(const Schedule& schedule, Direction direction, std::int64_t index) {
  const std::int64_t round_length = std::int64_t{schedule.stages} * schedule.virtual_stages;
  const std::int64_t in_round = index % round_length;
  const int micro_batch =
      static_cast<int>(index / round_length * schedule.stages + in_round % schedule.stages);
  const int chunk = static_cast<int>(in_round / schedule.stages);
  if (direction == Direction::forward) return {ActionKind::forward, micro_batch, chunk};
  return {ActionKind::backward, micro_batch, schedule.virtual_stages - 1 - chunk};
}

/// Warm-up of forwards, steady pairs of one forward and one backward, cool-down of backwards.
/// With one chunk a stage, the order of action_in_order is that of the micro-batches.
std::vector<Action> one_forward_one_backward_actions(const Schedule& schedule, int stage) {
  const std::int64_t total = std::int64_t{schedule.micro_batches} * schedule.virtual_stages;
  const std::int64_t warm_up = warm_up_forwards(schedule, stage);
  std::vector<Action> actions;
  actions.reserve(static_cast<std::size_t>(2 * total));
  for (std::int64_t forward = 0; forward < total + warm_up; ++forward) {
    if (forward < total) {
      actions.push_back(action_in_order(schedule, Direction::forward, forward));
    }
    if (forward >= warm_up) {
      actions.push_back(action_in_order(schedule, Direction::backward, forward - warm_up));
    }
  }
  return actions;
}

/// [stage]
std::vector<std::vector<Action>> actions_of(const Schedule& schedule) {
  if (schedule.kind == ScheduleKind::zero_bubble_v) return zero_bubble_v_actions(schedule);
  std::vector<std::vector<Action>> actions;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    switch (schedule.kind) {
      case ScheduleKind::gpipe:
        actions.push_back(gpipe_actions(schedule));
        break;
      case ScheduleKind::one_forward_one_backward:
      case ScheduleKind::interleaved:
        actions.push_back(one_forward_one_backward_actions(schedule, stage));
        break;
      case ScheduleKind::zero_bubble_h1:
      case ScheduleKind::zero_bubble_h2:
        actions.push_back(zero_bubble_actions(schedule, stage));
        break;
      case ScheduleKind::zero_bubble_v:
        break;
    }
  }
  return actions;
}

}  // namespace

base::Result<Schedule> make_schedule(ScheduleKind kind, int stages, int micro_batches,
                                     int virtual_stages) {
  const ParallelArrangement asked{.pipeline = stages,
                                  .schedule = kind,
                                  .virtual_stages = virtual_stages,
                                  .micro_batches = micro_batches};
  for (const auto& violation : violations(asked)) {
    // Chunks on one stage gain nothing, but the schedule is valid.
    if (violation.rule == ParallelRule::interleaved_on_one_stage) continue;
    return base::usage_failure(text(violation, citation(asked)));
  }
  Schedule schedule{kind, stages, micro_batches, virtual_stages, {}};
  schedule.actions = actions_of(schedule);
  return schedule;
}

Schedule breadth_first(int chunks, int micro_batches) {
  Schedule schedule{ScheduleKind::gpipe, 1, micro_batches, chunks, {}};
  auto& actions = schedule.actions.emplace_back();
  const auto add = [&](ActionKind kind, int chunk) {
    for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      actions.push_back({kind, micro_batch, chunk});
    }
  };
  for (int chunk = 0; chunk < chunks; ++chunk) add(ActionKind::forward, chunk);
  for (int chunk = chunks; chunk-- > 0;) add(ActionKind::backward, chunk);
  return schedule;
}

}  // namespace trireme::layout
