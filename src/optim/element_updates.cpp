// SPDX-License-Identifier: Apache-2.0
#include "element_updates.hpp"

namespace trireme::optim {

void ElementUpdates::update(const UpdateStep& step) const {
  for (const auto& segment : state_.segments()) {
    if (segment.content != Content::elements) continue;
    StateRing::Run run{segment, state_.master(segment), {}};
    for (const auto& state : state_.of(segment)) run.states.push_back(state.values);
    update(step, run);
  }
}

void ElementUpdates::update(const UpdateStep& step, StateRing& ring) const {
  ring.update([&](const StateRing::Run& run) { update(step, run); });
}

void ElementUpdates::update(const UpdateStep& step, const StateRing::Run& run) const {
  const auto& [segment, master, states] = run;
  const float decay = segment.decays ? rule_.weight_decay : 0.0F;
  if (rule_.kind == RuleKind::sgd) {
    step.kernels.issue(
        device::SgdUpdate{.rule = {.learning_rate = step.learning_rate,
                                   .momentum = rule_.momentum,
                                   .weight_decay = decay,
                                   .gradient_scale = step.gradient_scale,
                                   .rounding = state_.rounding(segment, step.number)},
                          .gradient = step.gradient(segment),
                          .master = master,
                          .momentum = states[0],
                          .parameter = state_.parameter(segment)});
    return;
  }
  // Beside matrices, whose rate this is.
  const double over_matrices = state_.matrix_rule() != nullptr ? rule_.adamw_rate : 1.0;
  const double rate = over_matrices * static_cast<double>(step.learning_rate);
  step.kernels.issue(
      device::AdamWUpdate{.rule = {.learning_rate = static_cast<float>(rate),
                                   .beta1 = rule_.beta1,
                                   .beta2 = rule_.beta2,
                                   .eps = rule_.eps,
                                   .weight_decay = decay,
                                   .gradient_scale = step.gradient_scale,
                                   .step = step.number,
                                   .rounding = state_.rounding(segment, step.number)},
                          .gradient = step.gradient(segment),
                          .master = master,
                          .first_moment = states[0],
                          .second_moment = states[1],
                          .parameter = state_.parameter(segment)});
}

}  // namespace trireme::optim
