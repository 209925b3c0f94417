// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/model/owned_tensors.hpp"

namespace trireme::engine {

/// Cost of an owner's matrix; none where no rule updates matrices whole.
model::CostOfMatrix cost_of_matrix(const EngineOptions& options);

/// Sets the assignment with which a run's matrices cost least, and why.
void choose_assignment(EngineOptions& options);

}  // namespace trireme::engine
