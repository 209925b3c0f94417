// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/model/stage_parameters.hpp"

#include <vector>

namespace trireme::engine {

/// Parameters of options.rank as an engine with these options holds them: a pure function, also of
/// the ranks of others.
model::StageParameters stage_parameters(const EngineOptions& options);

/// The shard pieces of a rank's flat buffers, as boxes of logical tensors. `gradients` may be
/// empty.
std::vector<ParameterPart> parameter_parts(const model::StageParameters& stage,
                                           const device::Tensor& parameters,
                                           const device::Tensor& gradients);

}  // namespace trireme::engine
