// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/model/stage_parameters.hpp"

#include <vector>

namespace trireme::engine {

/// The shard pieces of a rank's flat buffers, as boxes of logical tensors. `gradients` may be
/// empty.
std::vector<ParameterPart> parameter_parts(const model::StageParameters& stage,
                                           const device::Tensor& parameters,
                                           const device::Tensor& gradients);

}  // namespace trireme::engine
