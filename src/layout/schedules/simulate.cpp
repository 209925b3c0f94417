// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/simulate.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"

#include "actions.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

namespace trireme::layout {
namespace {

constexpr double not_yet = std::numeric_limits<double>::infinity();

/// Times at which outputs of (chunk, micro-batch) pairs are available, and the inputs of an action.
class Dependencies {
 public:
  Dependencies(const Schedule& schedule, double message)
      : placement_(schedule.placement()),
        micro_batches_(static_cast<std::size_t>(schedule.micro_batches)),
        message_(message) {
    const auto count = static_cast<std::size_t>(placement_.positions()) * micro_batches_;
    forward_end_.assign(count, not_yet);
    gradient_end_.assign(count, not_yet);
  }

  struct Need {
    ChunkPlace place = no_place;
    ActionKind kind = ActionKind::forward;
    double available = 0;  ///< not_yet while it is not there
  };

  /// Inputs of `action` on `stage`; of one that has fewer, some are nowhere and always there.
  std::array<Need, 2> needs(int stage, const Action& action) const {
    const ChunkPlace here{stage, action.virtual_stage};
    switch (action.kind) {
      case ActionKind::forward:
        return {from_neighbour(placement_.previous(here), here, action), Need{}};
      case ActionKind::backward:
      case ActionKind::backward_input:
        return {from_neighbour(placement_.next(here), here, action),
                Need{here, ActionKind::forward, forward_end_[index(here, action)]}};
      case ActionKind::backward_weight:
        return {Need{here, ActionKind::backward_input, gradient_end_[index(here, action)]}, Need{}};
    }
    return {};
  }

  void finish(int stage, const Action& action, double end) {
    const std::size_t at = index({stage, action.virtual_stage}, action);
    if (action.kind == ActionKind::forward) forward_end_[at] = end;
    if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_input) {
      gradient_end_[at] = end;
    }
  }

 private:
  Need from_neighbour(ChunkPlace there, ChunkPlace here, const Action& action) const {
    if (there == no_place) return {};
    const auto& ends = action.kind == ActionKind::forward ? forward_end_ : gradient_end_;
    const double travel = there.stage == here.stage ? 0.0 : message_;
    return {there, action.kind, ends[index(there, action)] + travel};
  }

  std::size_t index(ChunkPlace place, const Action& action) const {
    return static_cast<std::size_t>(placement_.position_of(place)) * micro_batches_ +
           static_cast<std::size_t>(action.micro_batch);
  }

  Placement placement_;
  std::size_t micro_batches_;
  double message_;
  std::vector<double> forward_end_;
  std::vector<double> gradient_end_;  ///< of backward or backward_input
};

double duration(const Costs& costs, ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return costs.forward;
    case ActionKind::backward:
      return costs.backward_input + costs.backward_weight;
    case ActionKind::backward_input:
      return costs.backward_input;
    case ActionKind::backward_weight:
      return costs.backward_weight;
  }
  return 0;
}

/// Time at which all inputs of the action are available; not_yet if one is not.
double ready_time(const Dependencies& dependencies, int stage, const Action& action) {
  double ready = 0;
  for (const auto& need : dependencies.needs(stage, action)) {
    ready = std::max(ready, need.available);
  }
  return ready;
}

using Timeline = std::vector<std::vector<TimedAction>>;

/// Runs every stage as far as it gets, again whenever a neighbour has got further. Each stage's
/// order is fixed, so the times do not depend on the order in which stages are looked at.
Timeline run(const Schedule& schedule, std::span<const Costs> costs, Dependencies& dependencies) {
  const auto placement = schedule.placement();
  Timeline timeline(static_cast<std::size_t>(schedule.stages));
  std::deque<int> awake;
  for (int stage = 0; stage < schedule.stages; ++stage) awake.push_back(stage);
  while (!awake.empty()) {
    const int stage = awake.front();
    awake.pop_front();
    const auto& actions = schedule.actions[static_cast<std::size_t>(stage)];
    auto& done = timeline[static_cast<std::size_t>(stage)];
    const std::size_t done_before = done.size();
    while (done.size() < actions.size()) {
      const Action& action = actions[done.size()];
      const double ready = ready_time(dependencies, stage, action);
      if (ready == not_yet) break;
      const double begin = std::max(ready, done.empty() ? 0.0 : done.back().end);
      const int position = placement.position_of({stage, action.virtual_stage});
      const double taken = duration(costs[static_cast<std::size_t>(position)], action.kind);
      done.push_back({action, begin, begin + taken});
      dependencies.finish(stage, action, done.back().end);
    }
    if (done.size() == done_before || schedule.stages == 1) continue;
    awake.push_back((stage + 1) % schedule.stages);
    awake.push_back((stage + schedule.stages - 1) % schedule.stages);
  }
  return timeline;
}

std::optional<base::Failure> deadlock(const Schedule& schedule, const Timeline& timeline,
                                      const Dependencies& dependencies) {
  std::vector<std::string> waits;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const auto& actions = schedule.actions[static_cast<std::size_t>(stage)];
    const std::size_t done = timeline[static_cast<std::size_t>(stage)].size();
    if (done == actions.size()) continue;
    const Action& action = actions[done];
    for (const auto& need : dependencies.needs(stage, action)) {
      if (need.available != not_yet) continue;
      const Action missing{need.kind, action.micro_batch, need.place.virtual_stage};
      waits.push_back(base::format("stage {} waits in {} for {} on stage {}", stage,
                                   text(schedule, action), text(schedule, missing),
                                   need.place.stage));
      break;
    }
  }
  if (waits.empty()) return std::nullopt;
  return base::Failure{
      base::ExitCode::internal,
      base::format("schedule {} of {} stages and {} micro-batches cannot finish (stages wait for "
                   "each other): {}; the generator of its actions must be mended",
                   name(schedule.kind), schedule.stages, schedule.micro_batches,
                   base::join(waits, "; "))};
}

void count_live(const Schedule& schedule, Simulation& simulation) {
  for (const auto& actions : schedule.actions) {
    std::vector<int> live(static_cast<std::size_t>(schedule.virtual_stages), 0);
    std::vector<int> peak = live;
    int live_total = 0;
    int peak_total = 0;
    for (const Action& action : actions) {
      const auto chunk = static_cast<std::size_t>(action.virtual_stage);
      const int change = action.kind == ActionKind::forward ? 1 : (releases(action.kind) ? -1 : 0);
      live[chunk] += change;
      live_total += change;
      peak[chunk] = std::max(peak[chunk], live[chunk]);
      peak_total = std::max(peak_total, live_total);
    }
    simulation.peak_live.push_back(std::move(peak));
    simulation.peak_live_total.push_back(peak_total);
  }
}

}  // namespace

base::Result<Simulation> simulate(const Schedule& schedule, const Costs& costs) {
  const auto positions = static_cast<std::size_t>(schedule.placement().positions());
  return simulate(schedule, std::vector<Costs>(positions, costs), costs.message);
}

base::Result<Simulation> simulate(const Schedule& schedule, std::span<const Costs> costs,
                                  double message) {
  TRIREME_EXPECT(std::cmp_equal(costs.size(), schedule.placement().positions()) && message >= 0,
                 "each position has its costs");
  for (const auto& each : costs) {
    TRIREME_EXPECT(each.forward >= 0 && each.backward_input >= 0 && each.backward_weight >= 0,
                   "durations are not negative");
  }
  if (const base::Status status = check(schedule); !status) return status.failure();
  Dependencies dependencies(schedule, message);
  Simulation simulation;
  simulation.timeline = run(schedule, costs, dependencies);
  if (auto failure = deadlock(schedule, simulation.timeline, dependencies)) return *failure;

  double busy = 0;
  for (const auto& stage : simulation.timeline) {
    for (const TimedAction& timed : stage) {
      busy += timed.end - timed.begin;
      simulation.makespan = std::max(simulation.makespan, timed.end);
    }
  }
  if (simulation.makespan > 0) {
    simulation.bubble_fraction = 1.0 - busy / (schedule.stages * simulation.makespan);
  }
  count_live(schedule, simulation);
  return simulation;
}

}  // namespace trireme::layout
