// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/chunk_buffers.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace trireme::layout {
namespace {

enum class Event { forward, input_gradient, weight_gradient };

bool is(const Action& action, Event event, ChunkPlace place) {
  if (action.virtual_stage != place.virtual_stage) return false;
  switch (action.kind) {
    case ActionKind::forward:
      return event == Event::forward;
    case ActionKind::backward:
      return event != Event::forward;
    case ActionKind::backward_input:
      return event == Event::input_gradient;
    case ActionKind::backward_weight:
      return event == Event::weight_gradient;
  }
  return false;
}

bool splits_backward(const std::vector<Action>& actions) {
  return std::any_of(actions.begin(), actions.end(), [](const Action& action) {
    return action.kind == ActionKind::backward_weight;
  });
}

/// Begin of a buffer's use by a micro-batch, with the action that writes it, and its end, behind
/// the action that reads it last.
struct Use {
  Event written;
  ChunkPlace writer;
  Event read;
  ChunkPlace reader;
};

/// Actions of a stage by chunk, so that what two chunks need of each other takes no look at those
/// of all others.
class ActionsByChunk {
 public:
  ActionsByChunk(const std::vector<Action>& actions, int chunks)
      : actions_(actions), places_(static_cast<std::size_t>(chunks)) {
    for (std::size_t place = 0; place < actions.size(); ++place) {
      places_[static_cast<std::size_t>(actions[place].virtual_stage)].push_back(place);
    }
  }

  /// Most micro-batches that use buffers at once.
  int peak(const Use& use) const {
    int held = 0;
    int most = 0;
    for (const auto place : places_of(use.writer.virtual_stage, use.reader.virtual_stage)) {
      const auto& action = actions_[place];
      if (is(action, use.written, use.writer)) most = std::max(most, ++held);
      if (is(action, use.read, use.reader)) --held;
    }
    return most;
  }

 private:
  std::vector<std::size_t> places_of(int one, int other) const {
    const auto& of_one = places_[static_cast<std::size_t>(one)];
    if (one == other) return of_one;
    const auto& of_other = places_[static_cast<std::size_t>(other)];
    std::vector<std::size_t> both;
    std::merge(of_one.begin(), of_one.end(), of_other.begin(), of_other.end(),
               std::back_inserter(both));
    return both;
  }

  const std::vector<Action>& actions_;
  std::vector<std::vector<std::size_t>> places_;  // [chunk], in actions_
};

/// Buffers of what comes from `giver`, which the reader's own action takes until `last` of its own.
int received(const ActionsByChunk& actions, ChunkPlace giver, ChunkPlace reader, Event given,
             Event last) {
  if (giver == no_place) return 0;
  if (giver.stage == reader.stage) return actions.peak({given, giver, last, reader});
  return actions.peak({given, reader, last, reader}) + 1;
}

/// Smallest length of at least `needed` that divides the period, or that the period divides.
int fitting(int needed, int period) {
  int length = needed;
  while (length > 0 && period % length != 0 && length % period != 0) ++length;
  return length;
}

}  // namespace

std::vector<ChunkBuffers> with_common_period(std::vector<ChunkBuffers> buffers) {
  for (auto& needs : buffers) {
    const int period = 2 * needs.activations;
    needs.inputs = fitting(needs.inputs, period);
    needs.output_gradients = fitting(needs.output_gradients, period);
  }
  return buffers;
}

std::vector<ChunkBuffers> chunk_buffers(const Schedule& schedule, int stage, Passes passes) {
  const auto placement = schedule.placement();
  const auto& all = schedule.actions[static_cast<std::size_t>(stage)];
  const ActionsByChunk actions(all, schedule.virtual_stages);
  const bool splits = splits_backward(all);
  std::vector<ChunkBuffers> buffers;
  for (int chunk = 0; chunk < schedule.virtual_stages; ++chunk) {
    const ChunkPlace here{stage, chunk};
    auto& needs = buffers.emplace_back();
    if (passes == Passes::forward_alone) {
      needs.inputs =
          received(actions, placement.previous(here), here, Event::forward, Event::forward);
      continue;
    }
    needs.activations = actions.peak({Event::forward, here, Event::input_gradient, here});
    needs.operands = actions.peak({Event::forward, here, Event::weight_gradient, here});
    if (splits) {
      needs.left = actions.peak({Event::input_gradient, here, Event::weight_gradient, here});
    }
    needs.inputs =
        received(actions, placement.previous(here), here, Event::forward, Event::input_gradient);
    needs.output_gradients = received(actions, placement.next(here), here, Event::input_gradient,
                                      Event::weight_gradient);
  }
  return buffers;
}

}  // namespace trireme::layout
