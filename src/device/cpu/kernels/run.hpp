// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations.hpp"

#include "device/cpu/runtime/context.hpp"

namespace trireme::device::cpu {

/// Computes one operation. The files of this folder specialise it, each for the operations of its
/// theme; the linker names an operation that none of them computes. GEMMs and attention keep state:
/// device/cpu/gemm, device/cpu/attention.
template <typename One>
void run(Context& context, const One& operation);

}  // namespace trireme::device::cpu
