// SPDX-License-Identifier: Apache-2.0
#include "zero_bubble.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/layout/simulate.hpp"

#include <algorithm>
#include <array>
#include <queue>
#include <tuple>
#include <utility>

namespace trireme::layout {

/// Warm-up of as many forwards as can be under way before the first gradient arrives, then in turn
/// a gradient of an input, one of weights and a forward. Gradients of weights wait as long as
/// activations of `most` micro-batches are not reached: the later a stage's first gradient, the
/// fewer it may leave for later.
std::vector<Action> zero_bubble_actions(const Schedule& schedule, int stage) {
  const bool holds_more = schedule.kind == ScheduleKind::zero_bubble_h2;
  const int most = holds_more ? 2 * schedule.stages - 1 : schedule.stages;
  const int warm_up = holds_more ? most - 2 * stage : most - stage;
  const int count = schedule.micro_batches;
  std::vector<Action> actions;
  int forwards = 0;
  int weights = 0;
  while (forwards < std::min(warm_up, count)) {
    actions.push_back({ActionKind::forward, forwards++, 0});
  }
  for (int micro_batch = 0; micro_batch < count; ++micro_batch) {
    actions.push_back({ActionKind::backward_input, micro_batch, 0});
    if (forwards - weights >= most || forwards == count) {
      actions.push_back({ActionKind::backward_weight, weights++, 0});
    }
    if (forwards < count) actions.push_back({ActionKind::forward, forwards++, 0});
  }
  while (weights < count) actions.push_back({ActionKind::backward_weight, weights++, 0});
  return actions;
}

namespace {

/// A kind of action on one of a stage's two chunks.
struct Choice {
  ActionKind kind;
  int virtual_stage;
};

constexpr Choice first_forward{ActionKind::forward, 0};
constexpr Choice second_forward{ActionKind::forward, 1};
constexpr Choice first_input{ActionKind::backward_input, 0};
constexpr Choice second_input{ActionKind::backward_input, 1};

/// Order in which a stage that is free takes what is ready; gradients of weights come last.
constexpr std::array<Choice, 4> preferred{second_forward, first_forward, first_input, second_input};

/// How long actions are taken to be, and how many chunks' activations a stage's first chunk leaves
/// free for its second. A forward is a hair shorter than half a backward: the order of what would
/// come at once then has forwards first.
struct Pace {
  int backward_input;
  int backward_weight;
  int reserved;

  int ticks(ActionKind kind) const {
    if (kind == ActionKind::forward) return 99;
    return kind == ActionKind::backward_weight ? backward_weight : backward_input;
  }
};

/// The first is the best of few micro-batches, where it reaches the shortest makespan there is,
/// 6 m + p - 1 chunks' actions of equal length; the others' orders of many micro-batches last where
/// gradients take unequally long.
constexpr Pace paces[] = {{100, 100, 0}, {115, 85, 0}, {130, 70, 0}, {130, 70, 1}};

/// Stages that take what is ready, one action after the other.
class GreedyStages {
 public:
  GreedyStages(const Schedule& schedule, const Pace& pace)
      : placement_(schedule.placement()),
        micro_batches_(schedule.micro_batches),
        pace_(pace),
        begun_(static_cast<std::size_t>(placement_.positions())),
        ended_(begun_),
        held_(static_cast<std::size_t>(placement_.stages), 0),
        busy_(held_.size(), false),
        actions_(held_.size()) {}

  std::vector<std::vector<Action>> run() {
    std::vector<int> awake;
    for (int stage = 0; stage < placement_.stages; ++stage) awake.push_back(stage);
    while (true) {
      for (const int stage : awake) begin_next(stage);
      if (ends_.empty()) return std::move(actions_);
      awake.clear();
      time_ = ends_.top().time;
      while (!ends_.empty() && ends_.top().time == time_) {
        end(ends_.top(), awake);
        ends_.pop();
      }
    }
  }

 private:
  struct Counts {
    int forward = 0;
    int input = 0;
    int weight = 0;

    int& of(ActionKind kind) {
      if (kind == ActionKind::forward) return forward;
      return kind == ActionKind::backward_input ? input : weight;
    }
  };
  struct End {
    int time;
    int position;
    ActionKind kind;

    bool operator<(const End& other) const {  // the top of a queue is the largest
      return std::tie(other.time, other.position, other.kind) < std::tie(time, position, kind);
    }
  };

  Counts& ended(int position) { return ended_[static_cast<std::size_t>(position)]; }

  bool is_ready(const Choice& choice, int position, int micro_batch) {
    const bool is_last = position + 1 == placement_.positions();
    switch (choice.kind) {
      case ActionKind::forward: {
        const auto stage = static_cast<std::size_t>(placement_.place_of(position).stage);
        const int reserved = choice.virtual_stage == 0 ? pace_.reserved : 0;
        return held_[stage] + reserved < placement_.positions() &&
               (position == 0 || ended(position - 1).forward > micro_batch);
      }
      case ActionKind::backward:
      case ActionKind::backward_input:
        return ended(position).forward > micro_batch &&
               (is_last || ended(position + 1).input > micro_batch);
      case ActionKind::backward_weight:
        return ended(position).input > micro_batch;
    }
    return false;
  }

  bool begin(int stage, const Choice& choice) {
    const int position = placement_.position_of({stage, choice.virtual_stage});
    auto& begun = begun_[static_cast<std::size_t>(position)].of(choice.kind);
    if (begun == micro_batches_ || !is_ready(choice, position, begun)) return false;
    const auto index = static_cast<std::size_t>(stage);
    if (choice.kind == ActionKind::forward) ++held_[index];
    if (choice.kind == ActionKind::backward_weight) --held_[index];
    actions_[index].push_back({choice.kind, begun++, choice.virtual_stage});
    ends_.push({time_ + pace_.ticks(choice.kind), position, choice.kind});
    busy_[index] = true;
    return true;
  }

  void begin_next(int stage) {
    if (busy_[static_cast<std::size_t>(stage)]) return;
    for (const auto& choice : preferred) {
      if (begin(stage, choice)) return;
    }
    for (const int chunk : {0, 1}) {
      if (begin(stage, {ActionKind::backward_weight, chunk})) return;
    }
  }

  /// `awake` gets the stages that may have something to do now.
  void end(const End& ended_action, std::vector<int>& awake) {
    const auto place = placement_.place_of(ended_action.position);
    ++ended(ended_action.position).of(ended_action.kind);
    busy_[static_cast<std::size_t>(place.stage)] = false;
    awake.push_back(place.stage);
    const auto other = ended_action.kind == ActionKind::forward ? placement_.next(place)
                                                                : placement_.previous(place);
    if (other != no_place) awake.push_back(other.stage);
  }

  Placement placement_;
  int micro_batches_;
  Pace pace_;
  std::vector<Counts> begun_;  // [position]
  std::vector<Counts> ended_;  // [position]
  std::vector<int> held_;      // [stage]: chunks' activations
  std::vector<bool> busy_;     // [stage]
  std::priority_queue<End> ends_;
  std::vector<std::vector<Action>> actions_;  // [stage]
  int time_ = 0;
};

/// Sum of the makespans with equal costs, and where inputs' gradients take longer than weights',
/// because attention's core and norms have weights' gradients of no length.
double makespans(const Schedule& schedule) {
  const auto equal = simulate(schedule, {1.0, 1.0, 1.0, 0.0});
  const auto unequal = simulate(schedule, {1.0, 1.3, 0.7, 0.0});
  TRIREME_ENSURE(equal.ok() && unequal.ok(), "a stage that takes what is ready does not stop");
  return equal->makespan + unequal->makespan;
}

}  // namespace

std::vector<std::vector<Action>> zero_bubble_v_actions(const Schedule& schedule) {
  std::vector<std::vector<Action>> best;
  double shortest = 0;
  for (const auto& pace : paces) {
    auto tried = schedule;
    tried.actions = GreedyStages(schedule, pace).run();
    const auto reached = makespans(tried);
    if (!best.empty() && reached >= shortest) continue;
    shortest = reached;
    best = std::move(tried.actions);
  }
  return best;
}

}  // namespace trireme::layout
