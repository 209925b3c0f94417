// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/device/kernels.hpp"

namespace trireme::train {

/// Collective. Logs which attention is used, and why not a faster one; fails where there is none.
void say_attention(const device::Kernels& kernels, const device::AttentionSize& size,
                   comm::ProcessGroup& world);

}  // namespace trireme::train
