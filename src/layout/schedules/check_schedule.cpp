// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/layout/simulate.hpp"

#include "actions.hpp"

namespace trireme::layout {

std::string text(const Schedule& schedule, const Action& action) {
  const std::string chunk = schedule.virtual_stages == 1
                                ? ""
                                : base::format(" of virtual stage {}", action.virtual_stage);
  return base::format("{} of micro-batch {}{}", name(action.kind), action.micro_batch, chunk);
}

namespace {

base::Failure wrong_list(int stage, const std::string& problem) {
  return {
      base::ExitCode::internal,
      base::format("schedule: stage {} {} (a step runs each micro-batch of each chunk forward "
                   "once and backward once, each kind of action in the order of micro-batches); "
                   "the generator of its actions must be mended",
                   stage, problem)};
}

/// Actions of one (chunk, micro-batch) that have been seen.
struct Seen {
  bool forward = false;
  bool input = false;
  bool weight = false;
};

/// Marks what the action does; false if any of it was done before.
bool mark(Seen& seen, ActionKind kind) {
  const bool input = gives_input_gradient(kind);
  const bool weight = releases(kind);
  const bool again = (kind == ActionKind::forward && seen.forward) || (input && seen.input) ||
                     (weight && seen.weight);
  seen.forward |= kind == ActionKind::forward;
  seen.input |= input;
  seen.weight |= weight;
  return !again;
}

base::Status check_stage(const Schedule& schedule, int stage) {
  const auto micro_batches = static_cast<std::size_t>(schedule.micro_batches);
  const auto chunks = static_cast<std::size_t>(schedule.virtual_stages);
  std::vector<Seen> seen(micro_batches * chunks);
  std::vector<int> next_forward(chunks, 0);
  std::vector<int> next_input(chunks, 0);
  std::vector<int> next_weight(chunks, 0);
  for (const Action& action : schedule.actions[static_cast<std::size_t>(stage)]) {
    if (action.micro_batch < 0 || action.micro_batch >= schedule.micro_batches ||
        action.virtual_stage < 0 || action.virtual_stage >= schedule.virtual_stages) {
      return wrong_list(stage, base::format("has {} of virtual stage {}, which does not exist",
                                            text(schedule, action), action.virtual_stage));
    }
    const auto chunk = static_cast<std::size_t>(action.virtual_stage);
    const auto at = chunk * micro_batches + static_cast<std::size_t>(action.micro_batch);
    if (!mark(seen[at], action.kind)) {
      return wrong_list(stage, "repeats " + text(schedule, action));
    }
    // Buffers are taken in the order of the forwards (chunk_buffers.hpp).
    if (action.kind == ActionKind::forward && action.micro_batch != next_forward[chunk]++) {
      return wrong_list(stage, "has " + text(schedule, action) + " out of order");
    }
    // Gradients of norms' weights come with those of inputs.
    if (gives_input_gradient(action.kind) && action.micro_batch != next_input[chunk]++) {
      return wrong_list(stage, "has " + text(schedule, action) + " out of order");
    }
    if (releases(action.kind) && action.micro_batch != next_weight[chunk]++) {
      return wrong_list(stage, "has " + text(schedule, action) + " out of order");
    }
  }
  for (std::size_t at = 0; at < seen.size(); ++at) {
    if (seen[at].forward && seen[at].input && seen[at].weight) continue;
    return wrong_list(stage, base::format("does not complete micro-batch {} of virtual stage {}",
                                          at % micro_batches, at / micro_batches));
  }
  return {};
}

}  // namespace

base::Status check(const Schedule& schedule) {
  TRIREME_EXPECT(schedule.stages > 0 && schedule.micro_batches > 0 && schedule.virtual_stages > 0,
                 "a schedule has stages, micro-batches and chunks");
  if (schedule.actions.size() != static_cast<std::size_t>(schedule.stages)) {
    return base::Failure{base::ExitCode::internal,
                         base::format("schedule: {} lists of actions for {} stages (each stage has "
                                      "one); the generator of its actions must be mended",
                                      schedule.actions.size(), schedule.stages)};
  }
  for (int stage = 0; stage < schedule.stages; ++stage) {
    if (const base::Status status = check_stage(schedule, stage); !status) return status;
  }
  return {};
}

}  // namespace trireme::layout
