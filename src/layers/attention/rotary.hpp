// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

namespace trireme::layers {

/// Angles of rotary embedding: f32 [positions, head_dim / 2] each. Empty for models without.
struct RotaryTables {
  device::Tensor cosines;
  device::Tensor sines;
};

/// Frequencies theta^(-2 i / head_dim) (Su et al. 2021), stretched as the configuration says
/// (llama3: wavelengths beyond the original context are scaled, short ones are not, a ramp
/// between), times positions 0, 1, 2…; fp32 as the published implementations compute them.
RotaryTables make_rotary_tables(const StageContext& context, std::int64_t positions,
                                device::Arena& arena);

}  // namespace trireme::layers
