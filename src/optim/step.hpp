// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/optim/optimizer.hpp"

namespace trireme::optim {

/// Facts that all segments of an update share.
struct Optimizer::Step {
  device::Tensor gradients;
  float learning_rate = 0;
  float gradient_scale = 1;
  std::int64_t number = 1;
};

}  // namespace trireme::optim
