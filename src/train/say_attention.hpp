// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/engine/engine.hpp"

namespace trireme::train {

/// Collective. Says by what attention is computed, and why not by what is faster; fails where
/// nothing computes it.
void say_attention(const device::Kernels& kernels, const engine::EngineOptions& options,
                   comm::ProcessGroup& world);

}  // namespace trireme::train
