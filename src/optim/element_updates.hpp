// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/optim/state.hpp"

#include "state_ring.hpp"

#include <cstdint>
#include <vector>

namespace trireme::optim {

/// Facts and means that all segments of an update share.
struct UpdateStep {
  device::Kernels& kernels;
  device::Arena& workspace;
  FlatValues gradients;
  float learning_rate = 0;
  float gradient_scale = 1;
  std::int64_t number = 1;

  device::Tensor gradient(const Segment& segment) const { return gradients.of(segment); }
};

/// Updates of flat ranges element by element: by SGD where that is the rule, by AdamW otherwise.
class ElementUpdates {
 public:
  ElementUpdates(const Rule& rule, const OptimizerState& state) : rule_(rule), state_(state) {}

  void update(const UpdateStep& step) const;
  /// The same of state that passes through a ring.
  void update(const UpdateStep& step, StateRing& ring) const;

 private:
  void update(const UpdateStep& step, const StateRing::Run& run) const;

  Rule rule_;
  const OptimizerState& state_;
};

}  // namespace trireme::optim
