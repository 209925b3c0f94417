// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

namespace trireme::layers {

/// Collective over the group. Host-blocking: no. magnitudes: f32 [n], not negative or NaN; each
/// becomes the largest of all ranks', NaN where any rank has a NaN.
void join_magnitudes(comm::ProcessGroup& group, const device::Tensor& magnitudes);

}  // namespace trireme::layers
