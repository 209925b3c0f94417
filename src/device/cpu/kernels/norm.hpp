// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include "device/cpu/runtime/context.hpp"

/// See Kernels for arguments and meaning.
namespace trireme::device::cpu {

void norm_forward(const Context& context, const NormForward& norm);
void norm_backward(Context& context, const NormBackward& norm);

}  // namespace trireme::device::cpu
