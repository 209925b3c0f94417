// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/ownership/price.hpp"
#include "trireme/sharding/options.hpp"

namespace trireme::sharding {

/// Cost of an owner's matrix; none where no rule updates matrices whole.
model::CostOfMatrix cost_of_matrix(const optim::Rule& rule, device::DType products);

/// Sets the assignment with which a run's matrices cost least in a step of this work on this
/// machine, and why. For options that divide matrices.
void choose_assignment(Options& options, const model::ModelConfig& model, device::DType products,
                       const ownership::StepWork& work, bool on_gpus);

/// Refuses a division of matrices that the rule or the machine cannot do.
base::Status check(const Options& options, const model::ModelConfig& model, bool on_gpus);

}  // namespace trireme::sharding
